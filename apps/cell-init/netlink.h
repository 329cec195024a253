/* SPDX-License-Identifier: Apache-2.0 */
/*
 * netlink: requests and dumps: one rtnetlink socket a namespace (generic netlink: one a step). An
 * acknowledgement that is an error fails the cell, with the kernel's extended message.
 */
#ifndef NETWARP_NETLINK_H
#define NETWARP_NETLINK_H

#include "cell.h"
#include "step.h"

/* Both return 0, or -1 with the reason set. */
int netlink_request(struct cell *cell, const struct step_netlink *step);
/* The record `dump`. */
int netlink_dump(struct cell *cell, const struct step_dump *step);

#endif
