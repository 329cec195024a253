/* SPDX-License-Identifier: Apache-2.0 */
/*
 * namespace: creates network namespaces and enters them. Namespace I is held only by descriptor NS_FD_BASE
 * + I of this process, so none outlives it. Netlink messages in the steps name that number: changing
 * NS_FD_BASE (step.h) means changing orchestrator/netwarp/testbed/messages.py too.
 */
#ifndef NETWARP_NAMESPACE_H
#define NETWARP_NAMESPACE_H

#include "cell.h"
#include "step.h"

#define NS_OWN (-1) /* the namespace that this process was started in */

/*
 * Both return 0, or -1 with the reason set. namespace_create() also brings lo up, binds the namespace to
 * /run/netns/NAME (so that `ip netns exec` works) and leaves this process in it; namespace_enter() takes an
 * index or NS_OWN, and makes no system call when the process is in that namespace already.
 */
int namespace_create(struct cell *cell, const struct step_ns *step);
int namespace_enter(struct cell *cell, int index);

#endif
