/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress: from T0 on, a console line "@<whole seconds>" at each mark (sandbox/sandbox.py reads it). If
 * ticks are on, a periodic timer also measures how late this process wakes; the record `ticks` holds the
 * counts, and sandbox/cell_verdict.py judges them.
 */
#ifndef NETWARP_PROGRESS_H
#define NETWARP_PROGRESS_H

#include "cell.h"
#include "step.h"

/* `on_mark` is called at each mark. If the step names a file `stop`, its existence at a mark or tick fails
 * the cell. Returns 0, or -1 with the reason set. */
int progress_begin(struct cell *cell, const struct step_progress *step, void (*on_mark)(void));
/* Whether ticks are on: the clock is the wall's. */
bool progress_has_ticks(void);
/* Stops counting ticks. */
void progress_end_ticks(void);
/* Writes the record `ticks`; nothing if ticks are off. */
void progress_record_ticks(struct cell *cell);

#endif
