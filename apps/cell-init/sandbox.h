/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox: what cell-init owns as pid 1: a guest kernel, or the namespaces that a parent process made. */
#ifndef NETWARP_SANDBOX_H
#define NETWARP_SANDBOX_H

#include "cell.h"
#include "step.h"

/* Set cell->guest, mount what a cell needs, go to the cell's directory. 0, or -1 with the reason set. */
int sandbox_enter(struct cell *cell);
/* Whether the step `sandbox` names this kind of sandbox. 0, or -1 with the reason set. */
int sandbox_check(struct cell *cell, const struct step_sandbox *step);
/* Kill the remaining processes, then power off (guest) or return the exit status (namespaces): 0 completed,
 * 1 failed, 2 timed out. */
int sandbox_leave(struct cell *cell);

#endif
