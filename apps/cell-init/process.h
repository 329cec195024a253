/* SPDX-License-Identifier: Apache-2.0 */
/* process: starts, signals and reaps the programs that a cell runs, and writes the record `exit` of each. */
#ifndef NETWARP_PROCESS_H
#define NETWARP_PROCESS_H

#include "cell.h"
#include "step.h"

#include <sys/types.h>

#define PROCESS_OUTPUTS 2 /* standard output and standard error */

struct process {
	const char *id; /* points into the steps, which must outlive it */
	const char *stdout_file;
	int output_fd[PROCESS_OUTPUTS]; /* in a guest: for process_drop_outputs(); -1: none */
	pid_t pid;
	bool flow; /* spawned with flow=1: `end early=1` waits for it */
	bool exited;
	bool killed;	/* by SIGKILL of process_signal_all() */
	int status;	/* of wait(2), once exited */
	int64_t cpu_ns; /* user and system time of its life and its children's, once exited */
	int64_t exit_realtime_ns;
};

/* These return 0, or -1 with the cell's reason set. */
/*
 * Start the program. Its environment is PATH, HOME, LANG=C, NETWARP_T0_REALTIME_NS once T0 is known, and
 * env=.
 */
int process_spawn(struct cell *cell, const struct step_spawn *step);
/* A process that has exited is not a failure: its record `exit` shows it. */
int process_signal(struct cell *cell, const struct step_signal *step);
/* Reap every child that has ended, without waiting, and write its record; the handler of SIGCHLD. */
int process_reap(struct cell *cell);

/*
 * Register the one child that another module forked (the capture process): process_reap() calls `ended`
 * with its status of wait(2) and writes no record. pid 0 removes it.
 */
void process_adopt(pid_t pid, int (*ended)(struct cell *cell, int status));

bool process_is_adopted(pid_t pid);

/* The process of that id, running or not; NULL: none. Valid until the next process_spawn(). */
const struct process *process_find(const char *id);
/* Whether any process was spawned with flow=1. */
bool process_any_flow(void);
/* Number of processes that run; with `flow` true only those spawned with flow=1. */
size_t process_running(bool flow);
void process_signal_all(int signal);
/* Send SIGKILL to all that still run, wait for them, write their records. */
void process_kill_all(struct cell *cell);
/* Drop the pages of the programs' output files from the guest's page cache (memory.h). */
void process_drop_outputs(void);

#endif
