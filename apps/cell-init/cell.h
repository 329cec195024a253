/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cell: the state of the one cell this process plays, and who may end it.
 *
 * One thread, one epoll loop, nothing spins. The first thing that goes wrong is kept as the cell's reason;
 * every function that can meet it returns -1 then, and main() unwinds to the end record.
 */
#ifndef NETWARP_CELL_H
#define NETWARP_CELL_H

#include "ndjson.h"
#include "process.h"
#include "steps.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define RECORD_FILE "init.ndjson"
/* Space that is given back when the disk is full, so that the last records can still be written. */
#define RESERVE_FILE  "init.reserve"
#define RESERVE_BYTES 65536

enum reason {
	REASON_NONE,
	REASON_COMPLETED,
	REASON_TIMED_OUT,
	REASON_FAILED,
};

/* What woke the loop: bits, so that one round can report several. */
enum wake {
	WAKE_SIGNAL = 1 << 0,	/* a process was reaped, or someone asked us to stop */
	WAKE_TIMER = 1 << 1,	/* the timer of cell_wake_at() */
	WAKE_DEADLINE = 1 << 2, /* ends the cell */
	WAKE_PROGRESS = 1 << 3,
	WAKE_CAPTURE = 1 << 4, /* the capture process has something to say */
	WAKE_WATCH = 1 << 5,   /* the descriptor of cell_watch() is readable */
};

struct cell {
	struct steps steps;
	struct ndjson out;
	bool guest; /* pid 1 of a kernel; else first process of namespaces */

	enum reason reason;
	unsigned int reason_step; /* 0: none */
	char message[512];

	bool running;	       /* `ready` was reached */
	const char *stop_file; /* ends the cell when it is there; NULL: none */
	bool t0_known;
	int64_t t0_realtime_ns;
	int64_t t0_monotonic_ns;
	const struct step *step; /* being played, or NULL */

	int clock_fd;
	int epoll_fd;
	int signal_fd;
	int timer_fd;
	int deadline_fd;
	int progress_fd;

	int ns_current;		/* index of the namespace we are in; -1: our own */
	int netlink_fd[NS_MAX]; /* 0: not open */
	uint32_t sequence;

	struct process *processes;
	size_t process_count;

	int kswapd_pid; /* the kernel's reclaiming thread; 0: not known */
	int64_t kswapd_sleeps;
	uint64_t memory_marks;
	int64_t free_least_kb, cached_most_kb;

	pid_t capture_pid;
	int capture_fd;

	/* How late the host makes what happens between the steps: a timer fires every tick_ns from T0 on. */
	int64_t every_ns; /* progress marks; the timer's period without ticks */
	int64_t tick_ns;  /* 0: none */
	int64_t tick_late_ns;
	int64_t mark_realtime_ns; /* next progress mark */
	bool ticks_over;
	int64_t ticks, ticks_late, tick_worst_ns;
};

/* Set the reason, once; returns -1 so that callers can `return cell_fail(...)`. */
int cell_fail(struct cell *cell, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same, with ": <text of error>" behind it. */
int cell_fail_errno(struct cell *cell, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* loop.c. All return 0, or -1 with the reason set. */
int loop_open(struct cell *cell);
void loop_close(struct cell *cell);
/* CLOCK_REALTIME, at no cost in virtual time. */
int64_t loop_now(const struct cell *cell);
/* Wait for at least one thing, deal with signals, deadlines, progress and the capture process; *wake: what it
 * was. */
int loop_wait(struct cell *cell, unsigned int *wake);
/* One timer for whoever waits now: an instant of CLOCK_REALTIME, or so long from now; 0 disarms it. */
int loop_wake_at(struct cell *cell, int64_t realtime_ns);
int loop_wake_in(struct cell *cell, int64_t ns);
int loop_deadline_in(struct cell *cell, int64_t ns);
int loop_deadline_at(struct cell *cell, int64_t realtime_ns);
/* Progress marks and ticks from T0 on, as cell->every_ns and tick_ns say. */
int loop_progress(struct cell *cell);
int loop_add(struct cell *cell, int fd, enum wake wake);
void loop_remove(struct cell *cell, int fd);

/* record.c: the lines of init.ndjson (docs/formats.md) */
int record_open(struct cell *cell);
void record_t(struct cell *cell, const char *key, int64_t realtime_ns);
int record_end_line(struct cell *cell);
void record_ticks(struct cell *cell);
int record_start(struct cell *cell);
int record_ready(struct cell *cell, int64_t waited_ns);
int record_timeline(struct cell *cell, const struct step *step, int64_t realtime_ns);
int record_exit(struct cell *cell, const struct process *process);
void record_end(struct cell *cell);

/* play.c */
void play(struct cell *cell);

/* steps that set or wait for something */
int netlink_request(struct cell *cell, const struct step *step);
int netlink_dump(struct cell *cell, const struct step *step);
int netlink_operstate(struct cell *cell, const struct step *step);
int module_load(struct cell *cell, const struct step *step);
int ns_create(struct cell *cell, const struct step *step);
int ns_enter(struct cell *cell, int index);
int setting_sysctl(struct cell *cell, const struct step *step);
int setting_memory(struct cell *cell, const struct step *step);
int setting_offload(struct cell *cell, const struct step *step);
int proc_read(struct cell *cell, const struct step *step);
int trace_begin(struct cell *cell, const struct step *step);
/* Of a cell without it: the one clock read that setting the trace's clock costs, so that both meet the same
 * random numbers. */
void trace_none(void);
/* Write what was traced; safe to call when there is none. */
int trace_finish(struct cell *cell);
int watch_output(struct cell *cell, const struct step *step);
int watch_file(struct cell *cell, const struct step *step);
int capture_begin(struct cell *cell);
/* Drain, record, and reap the capture process; safe to call when there is none. */
int capture_finish(struct cell *cell);
/* The capture process spoke before it was asked: it failed. */
int capture_spoke(struct cell *cell);

/* Make the directories above `path`. Returns 0, or -1 and errno. */
int make_parents(const char *path);

#endif
