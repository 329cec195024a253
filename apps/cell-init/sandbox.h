/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox: what cell-init owns as pid 1: a guest kernel, or the namespaces that a parent process made. main.c
 * enters it first and leaves it last. */
#ifndef NETWARP_SANDBOX_H
#define NETWARP_SANDBOX_H

#include "cell.h"
#include "step.h"

/* Refuses any pid but 1. Sets cell->guest; sets the timer slack to 1 ns, the limit of open files to its
 * maximum (descriptors 200 and up are namespaces) and, where allowed, SCHED_FIFO, so that at equal times the
 * timeline runs before the apps; mounts proc, sysfs, /run (a guest: /dev/shm and the cell's directory too)
 * and goes to the cell's directory. 0, or -1 with the reason set. */
int sandbox_enter(struct cell *cell);
/* Checks that steps.txt asks for the kind of sandbox that this is (guest or namespaces). 0, or -1 with the
 * reason set. */
int sandbox_check(struct cell *cell, const struct step_sandbox *step);
/* Kills the remaining processes, then powers off (guest) or returns the exit status (namespaces): 0
 * completed, 1 failed, 2 timed out. sandbox/netns.py and docs/formats.md rely on these numbers. */
int sandbox_leave(struct cell *cell);

#endif
