/* SPDX-License-Identifier: Apache-2.0 */
/* phases: carries out the steps in the four phases of a cell: set-up, ready, timeline, end. */
#ifndef NETWARP_PHASES_H
#define NETWARP_PHASES_H

#include "cell.h"
#include "steps.h"

/* Sets the cell's reason. */
void phases_run(struct cell *cell, const struct steps *steps);

#endif
