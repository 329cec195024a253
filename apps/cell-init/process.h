/* SPDX-License-Identifier: Apache-2.0 */
/* process: the programs a cell runs. */
#ifndef NETWARP_PROCESS_H
#define NETWARP_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct cell;
struct step;

#define PROCESS_OUTPUTS 2 /* standard output and standard error */

struct process {
	const char *id; /* of the step's text */
	const char *stdout_file;
	int output_fd[PROCESS_OUTPUTS]; /* in a guest: of memory.c; -1: none */
	pid_t pid;
	bool flow;
	bool exited;
	bool killed; /* by us, after the grace */
	int status;  /* of wait(2), once exited */
	int64_t exit_realtime_ns;
};

int process_spawn(struct cell *cell, const struct step *step);
int process_signal(struct cell *cell, const struct step *step);
struct process *process_find(struct cell *cell, const char *id);
/* Collect every child that has ended. Returns 0, or -1 with the cell's reason set. */
int process_reap(struct cell *cell);
/* How many run; with `flow`, how many of those that were spawned with flow=1. */
size_t process_running(const struct cell *cell, bool flow);
void process_signal_all(struct cell *cell, int signal);

#endif
