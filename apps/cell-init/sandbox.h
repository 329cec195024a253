/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox: the place cell-init owns: a whole guest kernel, or the namespaces a parent made. */
#ifndef NETWARP_SANDBOX_H
#define NETWARP_SANDBOX_H

#include "cell.h"

/* Find out which it is, mount what a cell needs, and go to the cell's directory. 0, or -1 with the reason
 * set. */
int sandbox_enter(struct cell *cell);
/* Does the `sandbox` step say what we found? */
int sandbox_check(struct cell *cell);
/* Kill whatever is left, then power off (guest) or return the exit status (namespaces): 0, 1 failed, 2 timed
 * out. */
int sandbox_leave(struct cell *cell);

#endif
