/* SPDX-License-Identifier: Apache-2.0 */
/*
 * phases: carries out the steps in the four phases of a cell: setup, ready, timeline, end (docs/formats.md,
 * "Steps").
 */
#ifndef NETWARP_PHASES_H
#define NETWARP_PHASES_H

#include "cell.h"
#include "steps.h"

/*
 * Returns when all processes have ended and the captures are complete, also after a failure. Sets
 * cell->reason.
 */
void phases_run(struct cell *cell, const struct steps *steps);

#endif
