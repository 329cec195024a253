/* SPDX-License-Identifier: Apache-2.0 */
/* sysctl: writes kernel settings below /proc/sys and reads them back. */
#ifndef NETWARP_SYSCTL_H
#define NETWARP_SYSCTL_H

#include "cell.h"
#include "step.h"

/*
 * Both return 0, or -1 with the cell's reason set.
 *
 * sysctl_set() writes the record `sysctl` with the value asked for and the value read back. It does not
 * compare them (the kernel may round); orchestrator/netwarp/testbed/readback.py does.
 */
int sysctl_set(struct cell *cell, const struct step_sysctl *step);
/*
 * Set the memory that TCP and SCTP may use for buffers (tcp_mem, sctp_mem). A guest with little memory
 * allows few pages by default, and under memory pressure the kernel announces small windows: the
 * measurement would show the sandbox and not the transport. Up to step->pages there is no pressure; 1.5
 * times as many are the hard limit. Guests only: it never changes this machine's own kernel.
 */
int sysctl_set_memory(struct cell *cell, const struct step_memory *step);

#endif
