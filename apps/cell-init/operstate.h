/* SPDX-License-Identifier: Apache-2.0 */
/*
 * operstate: waits until a link's operational state is UP. It waits for the kernel's netlink message and
 * does not poll; after step->timeout_ns the cell fails.
 */
#ifndef NETWARP_OPERSTATE_H
#define NETWARP_OPERSTATE_H

#include "cell.h"
#include "step.h"

/* 0, or -1 with the reason set. */
int operstate_wait(struct cell *cell, const struct step_operstate *step);

#endif
