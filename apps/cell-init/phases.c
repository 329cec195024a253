// SPDX-License-Identifier: Apache-2.0
/* Documented in phases.h. */
#include "phases.h"

#include "capture.h"
#include "clock.h"
#include "files.h"
#include "kernel_module.h"
#include "loop.h"
#include "memory.h"
#include "namespace.h"
#include "namespace_kill.h"
#include "netlink.h"
#include "offload.h"
#include "operstate.h"
#include "packet_program.h"
#include "proc_file.h"
#include "process.h"
#include "progress.h"
#include "record.h"
#include "sysctl.h"
#include "trace.h"
#include "wait_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_SETUP_NS (600 * NS_PER_S)
#define DEFAULT_SLACK_NS (600 * NS_PER_S) /* after `end` and its grace, if no deadline is given */

#define LEAD_NS 1000

/*
 * Progress marks (one per second) between two calls of memory_look(): dropping pages costs a system call
 * per file.
 */
#define MEMORY_MARKS 16

/* One step that is neither `ready` nor `end`. */
static int run_step(struct cell *cell, const struct steps *steps, const struct step *step)
{
	switch (step->verb) {
	case VERB_MODULE:
		return kernel_module_load(cell, &step->module);
	case VERB_MEMORY:
		return sysctl_set_memory(cell, &step->memory);
	case VERB_NS:
		return namespace_create(cell, &step->ns);
	case VERB_ADOPT:
		return netlink_adopt(cell, &step->adopt);
	case VERB_NETLINK:
		return netlink_request(cell, &step->netlink);
	case VERB_DUMP:
		return netlink_dump(cell, &step->dump);
	case VERB_SYSCTL:
		return sysctl_set(cell, &step->sysctl);
	case VERB_OFFLOAD:
		return offload_switch_off(cell, &step->offload);
	case VERB_OPERSTATE:
		return operstate_wait(cell, &step->operstate);
	case VERB_CAPTURE_START:
		if (!steps_find(steps, VERB_TRACE))
			trace_none();
		return capture_begin(cell, steps);
	case VERB_SPAWN:
		return process_spawn(cell, &step->spawn);
	case VERB_OUTPUT:
		return wait_file_output(cell, &step->output);
	case VERB_FILE:
		return wait_file_made(cell, &step->file);
	case VERB_SIGNAL:
		return process_signal(cell, &step->signal);
	case VERB_KILL:
		return namespace_kill(cell, &step->kill);
	case VERB_TRACE:
		return trace_begin(cell, &step->trace);
	case VERB_PROC:
		return proc_file_record(cell, &step->proc);
	case VERB_BPF:
		return packet_program_load(cell, &step->bpf);
	case VERB_BPF_SETTINGS:
		return packet_program_settings(cell, &step->bpf_settings);
	case VERB_BPF_RECORD:
		return packet_program_record(cell, &step->bpf_record);
	case VERB_SANDBOX:
	case VERB_CLOCK:
	case VERB_DEADLINE:
	case VERB_PROGRESS:
	case VERB_CAPTURE: /* capture-start collects them */
	case VERB_READY:
	case VERB_END:
	case VERB_COUNT:
		break;
	}
	return 0;
}

static int run_phase(struct cell *cell, const struct steps *steps, enum phase phase)
{
	const struct step *step;
	size_t i;

	for (i = 0; i < steps->count; i++) {
		step = &steps->list[i];
		cell->step = step->line;
		if (step->phase == phase && run_step(cell, steps, step))
			return -1;
	}
	cell->step = 0;
	return 0;
}

/*
 * The instant on CLOCK_MONOTONIC: the realtime read is in the middle of two monotonic ones, which cost the
 * same.
 */
static int64_t monotonic_of(int64_t realtime_ns)
{
	int64_t before = clock_monotonic_ns(), realtime = clock_realtime_ns(), after = clock_monotonic_ns();

	return realtime_ns - realtime + before + (after - before) / 2;
}

static bool in_guest;

static void on_mark(void)
{
	static unsigned int marks;

	if (!in_guest || ++marks % MEMORY_MARKS)
		return;
	memory_look(); /* before the pages are dropped: the most that is kept */
	process_drop_outputs();
}

static int record_ready(struct cell *cell, int64_t t0_monotonic_ns, int64_t waited_ns)
{
	ndjson_begin(&cell->out, "ready");
	ndjson_int(&cell->out, "t0_realtime_ns", cell->t0_realtime_ns);
	ndjson_int(&cell->out, "t0_monotonic_ns", t0_monotonic_ns);
	ndjson_int(&cell->out, "waited_ns", waited_ns);
	return record_end_line(cell);
}

/* Everything is set up: says so, then waits for the file that holds T0. */
static int await_t0(struct cell *cell, const char *path, int64_t timeout_ns)
{
	struct step_file file = {.path = path, .timeout_ns = timeout_ns};
	char text[32], *end = text;
	ssize_t n = -1;
	int fd;

	ndjson_begin(&cell->out, "waiting");
	ndjson_str(&cell->out, "file", path);
	if (record_end_line(cell) || wait_file_made(cell, &file))
		return -1;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	if (n > 0) {
		text[n] = '\0';
		cell->t0_realtime_ns = strtoll(text, &end, 10);
	}
	if (end == text || *end != '\n')
		return cell_fail(cell, "%s holds no T0", path);
	cell->t0_known = true;
	return 0;
}

/* For programs that were started before T0 was known: the file `t0`, as one that somebody else makes
 * (t0_file). */
static int tell_t0(struct cell *cell)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRId64 "\n", cell->t0_realtime_ns);
	if (files_write("t0", text, O_CREAT | O_TRUNC) != (ssize_t)strlen(text))
		return cell_fail_errno(cell, errno, "t0");
	return 0;
}

static int ready(struct cell *cell, const struct steps *steps)
{
	const struct step *clock = steps_find(steps, VERB_CLOCK), *end = steps_find(steps, VERB_END);
	const struct step *deadline = steps_find(steps, VERB_DEADLINE);
	const struct step *progress = steps_find(steps, VERB_PROGRESS);
	int64_t now, t0_monotonic_ns, after_ns;

	cell->step = steps_find(steps, VERB_READY)->line;
	if (clock->clock.t0_file &&
	    await_t0(cell, clock->clock.t0_file, deadline ? deadline->deadline.setup_ns : DEFAULT_SETUP_NS))
		return -1;
	now = cell_now(cell);
	if (!cell->t0_known) {
		cell->t0_realtime_ns = now + clock->clock.t0_after_ready_ns;
		cell->t0_known = true;
		if (tell_t0(cell))
			return -1;
	}
	if (now > cell->t0_realtime_ns)
		return cell_fail(cell, "T0 was %lld ns ago: the set-up took too long",
				 (long long)(now - cell->t0_realtime_ns));
	t0_monotonic_ns = monotonic_of(cell->t0_realtime_ns);
	after_ns =
	    deadline ? deadline->deadline.after_t0_ns : end->at_ns + end->end.grace_ns + DEFAULT_SLACK_NS;
	if (loop_deadline_at(cell, cell->t0_realtime_ns + after_ns))
		return -1;
	in_guest = cell->guest;
	if (progress && progress_begin(cell, &progress->progress, on_mark))
		return -1;
	memory_begin(cell);
	cell->running = true;
	if (packet_programs_begin(cell, t0_monotonic_ns) ||
	    record_ready(cell, t0_monotonic_ns, cell->t0_realtime_ns - now))
		return -1;
	cell->step = 0;
	return 0;
}

/*
 * No packet can come from the flows any more: all have ended, and none is still to be spawned. With `file`,
 * which is made when those of other machines are over as well, there may be none here.
 */
static bool flows_over(const struct steps *steps, size_t next, const char *file)
{
	size_t i;

	for (i = next; i < steps->count; i++)
		if (steps->list[i].verb == VERB_SPAWN && steps->list[i].spawn.flow)
			return false;
	return (file ? access(file, F_OK) == 0 : process_any_flow()) && process_running(true) == 0;
}

/*
 * Sleep until the next step's time, or, where the end is early, until the flows are over. 1: early, 0: it is
 * time, -1: failed.
 *
 * A step is begun LEAD_NS before T0 + at: an app that wakes at that very instant must find it done, and a
 * timer of ours at the same instant does not ensure that (under 6.12's fair server an ordinary task can go
 * first).
 */
static int wait_until(struct cell *cell, const struct steps *steps, size_t next, const struct step_end *end)
{
	const struct step *step = &steps->list[next];
	bool early = end->early;
	int64_t lead_ns = step->verb == VERB_END ? 0 : LEAD_NS;
	int woken = LOOP_WOKEN;

	if (early && flows_over(steps, next, end->file))
		return 1;
	if (loop_wake_at(cell, cell->t0_realtime_ns + step->at_ns - lead_ns))
		return -1;
	while (woken != LOOP_TIMER) {
		woken = loop_wait(cell);
		if (woken < 0)
			return -1;
		if (early && flows_over(steps, next, end->file))
			return 1;
	}
	return 0;
}

static int record_timeline(struct cell *cell, const struct step *step, int64_t realtime_ns)
{
	record_begin_step(cell, "timeline");
	ndjson_str(&cell->out, "verb", verb_specs[step->verb].name);
	ndjson_int(&cell->out, "at_ns", step->at_ns);
	record_t(cell, "t_ns", realtime_ns);
	return record_end_line(cell);
}

static int run_timeline(struct cell *cell, const struct steps *steps)
{
	const struct step_end *end = &steps_find(steps, VERB_END)->end;
	size_t i = (size_t)(steps_find(steps, VERB_READY) - steps->list) + 1;
	int64_t slept_for = NO_TIME, now;
	const struct step *step;
	int result, woken;

	for (; i < steps->count; i++) {
		step = &steps->list[i];
		/* equal times: no further sleep, so that they are as close as they can be */
		if (step->at_ns != slept_for) {
			woken = wait_until(cell, steps, i, end);
			if (woken)
				return woken < 0 ? -1 : 0;
			slept_for = step->at_ns;
		}
		if (step->verb == VERB_END)
			return 0;
		cell->step = step->line;
		now = cell_now(cell);
		result = run_step(cell, steps, step);
		if (record_timeline(cell, step, now) || result)
			return -1;
		cell->step = 0;
	}
	return 0;
}

/* SIGTERM, then the grace. A process that still runs after it is killed, as its record `exit` says. */
static int stop_processes(struct cell *cell, int64_t grace_ns)
{
	int woken = LOOP_WOKEN;

	if (process_reap(cell))
		return -1;
	if (!process_running(false))
		return 0;
	process_signal_all(SIGTERM);
	if (loop_wake_in(cell, grace_ns))
		return -1;
	while (process_running(false) && woken != LOOP_TIMER) {
		woken = loop_wait(cell);
		if (woken < 0)
			return -1;
	}
	return process_reap(cell);
}

/* Set-up, ready and timeline, until the processes have been stopped. */
static int run_to_end(struct cell *cell, const struct steps *steps)
{
	const struct step *clock = steps_find(steps, VERB_CLOCK);
	const struct step *deadline = steps_find(steps, VERB_DEADLINE);

	if (clock && clock->clock.t0_realtime_ns != NO_TIME) {
		cell->t0_realtime_ns = clock->clock.t0_realtime_ns;
		cell->t0_known = true;
	}
	loop_on_child(process_reap);
	if (loop_deadline_in(cell, deadline ? deadline->deadline.setup_ns : DEFAULT_SETUP_NS) ||
	    run_phase(cell, steps, PHASE_SETUP))
		return -1;
	if (!steps_find(steps, VERB_READY))
		return 0;
	if (ready(cell, steps) || run_timeline(cell, steps))
		return -1;
	progress_end_ticks();
	return stop_processes(cell, steps_find(steps, VERB_END)->end.grace_ns);
}

void phases_run(struct cell *cell, const struct steps *steps)
{
	bool failed = run_to_end(cell, steps) != 0;

	cell->step = 0;
	process_kill_all(cell);
	if (!failed)
		failed = run_phase(cell, steps, PHASE_AFTER) != 0;
	cell->step = 0;
	if (trace_finish(cell))
		failed = true;
	if (capture_finish(cell))
		failed = true;
	progress_record_ticks(cell);
	if (memory_record(cell))
		failed = true;
	if (!failed && cell->reason == REASON_NONE)
		cell->reason = REASON_COMPLETED;
}
