/* SPDX-License-Identifier: Apache-2.0 */
/*
 * netlink: sends the requests of a step, and takes dumps, in a network namespace. Uses one rtnetlink socket
 * per namespace; a generic netlink step opens its own. An acknowledgement that is an error fails the cell,
 * with the kernel's extended message.
 */
#ifndef NETWARP_NETLINK_H
#define NETWARP_NETLINK_H

#include "cell.h"
#include "step.h"

/* All return 0, or -1 with the reason set. */
/* Move an interface of the namespace that this process was started in to another, under a number of its own.
 */
int netlink_adopt(struct cell *cell, const struct step_adopt *step);
/* Both write sequence numbers (and the number of a generic netlink family) into the messages that the step
 * points to: a step can be sent once. */
int netlink_request(struct cell *cell, const struct step_netlink *step);
/* Also writes the record `dump`: namespace, label, the kernel's replies in hexadecimal. testbed/readback.py
 * reads it. */
int netlink_dump(struct cell *cell, const struct step_dump *step);

#endif
