/* SPDX-License-Identifier: Apache-2.0 */
/* operstate: waits until a link is up: for the kernel's message, never for a time. */
#ifndef NETWARP_OPERSTATE_H
#define NETWARP_OPERSTATE_H

#include "cell.h"
#include "step.h"

/* 0, or -1 with the reason set. */
int operstate_wait(struct cell *cell, const struct step_operstate *step);

#endif
