/* SPDX-License-Identifier: Apache-2.0 */
/* sysctl: kernel settings below /proc/sys, set and read back. */
#ifndef NETWARP_SYSCTL_H
#define NETWARP_SYSCTL_H

#include "cell.h"
#include "step.h"

/* Both return 0, or -1 with the reason set. */
int sysctl_set(struct cell *cell, const struct step_sysctl *step);
/*
 * The memory that TCP and SCTP may take for buffers. A kernel with little memory allows few pages, and under
 * memory pressure it announces small windows from then on: the transport then measures the sandbox. Up to
 * step->pages there is no pressure; half as many more are the limit.
 */
int sysctl_set_memory(struct cell *cell, const struct step_memory *step);

#endif
