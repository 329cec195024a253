/* SPDX-License-Identifier: Apache-2.0 */
/* process: the programs that a cell runs, and their record `exit`. */
#ifndef NETWARP_PROCESS_H
#define NETWARP_PROCESS_H

#include "cell.h"
#include "step.h"

#include <sys/types.h>

#define PROCESS_OUTPUTS 2 /* standard output and standard error */

struct process {
	const char *id; /* of the step's text */
	const char *stdout_file;
	int output_fd[PROCESS_OUTPUTS]; /* in a guest: to drop their pages; -1: none */
	pid_t pid;
	bool flow;
	bool exited;
	bool killed; /* by us, after the grace */
	int status;  /* of wait(2), once exited */
	int64_t exit_realtime_ns;
};

/* These return 0, or -1 with the cell's reason set. */
int process_spawn(struct cell *cell, const struct step_spawn *step);
int process_signal(struct cell *cell, const struct step_signal *step);
/* Wait for every child that has ended. */
int process_reap(struct cell *cell);

/* Another module's child: process_reap() calls `ended` with its status of wait(2). */
void process_adopt(pid_t pid, int (*ended)(struct cell *cell, int status));

const struct process *process_find(const char *id);
bool process_any_flow(void);
/* How many run; with `flow`, how many of those that were spawned with flow=1. */
size_t process_running(bool flow);
void process_signal_all(int signal);
/* SIGKILL to those that still run, and wait for them. */
void process_kill_all(struct cell *cell);
/* Drop the pages of the programs' outputs from the guest's page cache. */
void process_drop_outputs(void);

#endif
