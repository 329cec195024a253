/* SPDX-License-Identifier: Apache-2.0 */
/* namespace_kill: kills every process of a network namespace, whoever started it: the programs of a host. */
#ifndef NETWARP_NAMESPACE_KILL_H
#define NETWARP_NAMESPACE_KILL_H

#include "cell.h"
#include "step.h"

/*
 * SIGKILL to all of them. The kernel then closes their sockets: SCTP by SHUTDOWN, TCP by FIN. With `abort`
 * they are told to linger for no time first, so that closing them is an ABORT or a RST. Returns 0, or -1 with
 * the cell's reason set.
 */
int namespace_kill(struct cell *cell, const struct step_kill *step);

#endif
