// SPDX-License-Identifier: Apache-2.0
/* The four phases of a cell: set-up, ready, timeline, end. */
#include "cell.h"
#include "clock.h"
#include "memory.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#define DEFAULT_SETUP_NS (600 * NS_PER_S)
#define DEFAULT_SLACK_NS (600 * NS_PER_S) /* behind `end` and its grace, where no deadline is given */

#define LEAD_NS 1000

static const struct step *find(const struct cell *cell, enum verb verb)
{
	size_t i;

	for (i = 0; i < cell->steps.count; i++)
		if (cell->steps.list[i].verb == verb)
			return &cell->steps.list[i];
	return NULL;
}

/* One step that is neither `ready` nor `end`. */
static int play_step(struct cell *cell, const struct step *step)
{
	switch (step->verb) {
	case VERB_MODULE:
		return module_load(cell, step);
	case VERB_MEMORY:
		return setting_memory(cell, step);
	case VERB_NS:
		return ns_create(cell, step);
	case VERB_NETLINK:
		return netlink_request(cell, step);
	case VERB_DUMP:
		return netlink_dump(cell, step);
	case VERB_SYSCTL:
		return setting_sysctl(cell, step);
	case VERB_OFFLOAD:
		return setting_offload(cell, step);
	case VERB_OPERSTATE:
		return netlink_operstate(cell, step);
	case VERB_CAPTURE_START:
		if (!find(cell, VERB_TRACE))
			trace_none();
		return capture_begin(cell);
	case VERB_SPAWN:
		return process_spawn(cell, step);
	case VERB_OUTPUT:
		return watch_output(cell, step);
	case VERB_FILE:
		return watch_file(cell, step);
	case VERB_SIGNAL:
		return process_signal(cell, step);
	case VERB_TRACE:
		return trace_begin(cell, step);
	case VERB_PROC:
		return proc_read(cell, step);
	case VERB_SANDBOX:
	case VERB_CLOCK:
	case VERB_DEADLINE:
	case VERB_PROGRESS:
	case VERB_CAPTURE: /* capture-start gathers them */
	case VERB_READY:
	case VERB_END:
	case VERB_COUNT:
		break;
	}
	return 0;
}

static int play_phase(struct cell *cell, enum phase phase)
{
	size_t i;

	for (i = 0; i < cell->steps.count; i++) {
		cell->step = &cell->steps.list[i];
		if (cell->step->phase == phase && play_step(cell, cell->step))
			return -1;
	}
	cell->step = NULL;
	return 0;
}

/* Both clocks at one instant: the realtime read stands in the middle of two monotonic ones, which cost the
 * same. */
static int64_t monotonic_of(int64_t realtime_ns)
{
	int64_t before = clock_monotonic_ns(), realtime = clock_realtime_ns(), after = clock_monotonic_ns();

	return realtime_ns - realtime + before + (after - before) / 2;
}

static int ready(struct cell *cell, const struct step *step)
{
	const struct step *clock = find(cell, VERB_CLOCK), *deadline = find(cell, VERB_DEADLINE);
	const struct step *end = find(cell, VERB_END), *progress = find(cell, VERB_PROGRESS);
	int64_t now = loop_now(cell), after_ns;

	cell->step = step;
	if (!cell->t0_known) {
		cell->t0_realtime_ns = now + step_int(clock, "t0_after_ready_ns", 0);
		cell->t0_known = true;
	}
	if (now > cell->t0_realtime_ns)
		return cell_fail(cell, "T0 was %lld ns ago: the set-up took too long",
				 (long long)(now - cell->t0_realtime_ns));
	cell->t0_monotonic_ns = monotonic_of(cell->t0_realtime_ns);
	after_ns = deadline ? step_int(deadline, "after_t0_ns", 0)
			    : end->at_ns + step_int(end, "grace_ns", 0) + DEFAULT_SLACK_NS;
	if (loop_deadline_at(cell, cell->t0_realtime_ns + after_ns))
		return -1;
	if (progress) {
		cell->every_ns = step_int(progress, "every_ns", 0);
		cell->tick_ns = step_int(progress, "tick_ns", 0);
		cell->stop_file = step_text(progress, "stop");
		cell->tick_late_ns = step_int(progress, "late_ns", 0);
		if (loop_progress(cell))
			return -1;
	}
	memory_begin(cell);
	cell->running = true;
	if (record_ready(cell, cell->t0_realtime_ns - now))
		return -1;
	cell->step = NULL;
	return 0;
}

/* Nothing more can come from the flows: all have ended, and none is still to be spawned. */
static bool flows_over(const struct cell *cell, size_t next)
{
	const struct step *step;
	bool any = false;
	size_t i;

	for (i = 0; i < cell->process_count; i++)
		any |= cell->processes[i].flow;
	for (i = next; i < cell->steps.count; i++) {
		step = &cell->steps.list[i];
		if (step->verb == VERB_SPAWN && step_int(step, "flow", 0))
			return false;
	}
	return any && process_running(cell, true) == 0;
}

/*
 * Sleep until the next step's time, or, with `early`, until the flows are over. 1: early, 0: it is time, -1:
 * failed.
 *
 * A step is begun LEAD_NS before T0 + at: an app that wakes at that very instant must find it done, and a
 * timer of ours at the same instant does not ensure that (under 6.12's fair server an ordinary task can go
 * first).
 */
static int wait_until(struct cell *cell, size_t next, bool early)
{
	const struct step *step = &cell->steps.list[next];
	int64_t lead_ns = step->verb == VERB_END ? 0 : LEAD_NS;
	unsigned int wake = 0;

	if (early && flows_over(cell, next))
		return 1;
	if (loop_wake_at(cell, cell->t0_realtime_ns + step->at_ns - lead_ns))
		return -1;
	while (!(wake & WAKE_TIMER)) {
		if (loop_wait(cell, &wake))
			return -1;
		if (early && flows_over(cell, next))
			return 1;
	}
	return 0;
}

static int timeline(struct cell *cell, size_t first)
{
	bool early = step_int(find(cell, VERB_END), "early", 0) == 1;
	const struct step *step;
	int64_t slept_for = NO_TIME, now;
	int result, woken;
	size_t i;

	for (i = first; i < cell->steps.count; i++) {
		step = &cell->steps.list[i];
		/* equal times: no further sleep, so that they are as close as they can be */
		if (step->at_ns != slept_for) {
			woken = wait_until(cell, i, early);
			if (woken)
				return woken < 0 ? -1 : 0;
			slept_for = step->at_ns;
		}
		if (step->verb == VERB_END)
			return 0;
		cell->step = step;
		now = loop_now(cell);
		result = play_step(cell, step);
		if (record_timeline(cell, step, now) || result)
			return -1;
		cell->step = NULL;
	}
	return 0;
}

/* SIGTERM, the grace, SIGKILL: whoever is left says so in its exit record. */
static int stop_processes(struct cell *cell, int64_t grace_ns)
{
	unsigned int wake = 0;

	if (process_reap(cell))
		return -1;
	if (!process_running(cell, false))
		return 0;
	process_signal_all(cell, SIGTERM);
	if (loop_wake_in(cell, grace_ns))
		return -1;
	while (process_running(cell, false) && !(wake & WAKE_TIMER))
		if (loop_wait(cell, &wake))
			return -1;
	return process_reap(cell);
}

/* Those that still run, whatever happened before. */
static void kill_processes(struct cell *cell)
{
	struct process *process;
	size_t i;

	process_signal_all(cell, SIGKILL);
	for (i = 0; i < cell->process_count; i++) {
		process = &cell->processes[i];
		if (process->exited || waitpid(process->pid, &process->status, 0) != process->pid)
			continue;
		process->exited = true;
		process->exit_realtime_ns = loop_now(cell);
		memory_release(process);
		record_exit(cell, process);
	}
}

static int play_all(struct cell *cell)
{
	const struct step *clock = find(cell, VERB_CLOCK), *deadline = find(cell, VERB_DEADLINE);
	const struct step *step = find(cell, VERB_READY);

	if (clock && step_value(clock, "t0_realtime_ns")) {
		cell->t0_realtime_ns = step_int(clock, "t0_realtime_ns", 0);
		cell->t0_known = true;
	}
	if (loop_deadline_in(cell, deadline ? step_int(deadline, "setup_ns", 0) : DEFAULT_SETUP_NS) ||
	    play_phase(cell, PHASE_SETUP))
		return -1;
	if (!step)
		return 0;
	if (ready(cell, step) || timeline(cell, (size_t)(step - cell->steps.list) + 1))
		return -1;
	cell->ticks_over = true;
	return stop_processes(cell, step_int(find(cell, VERB_END), "grace_ns", 0));
}

void play(struct cell *cell)
{
	bool failed = play_all(cell) != 0;

	cell->step = NULL;
	kill_processes(cell);
	if (!failed)
		failed = play_phase(cell, PHASE_AFTER) != 0;
	cell->step = NULL;
	if (trace_finish(cell))
		failed = true;
	if (capture_finish(cell))
		failed = true;
	record_ticks(cell);
	if (memory_record(cell))
		failed = true;
	if (!failed && cell->reason == REASON_NONE)
		cell->reason = REASON_COMPLETED;
}
