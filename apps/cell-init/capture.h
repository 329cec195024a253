/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capture: starts the capture process (one per cell, capture_process.h) and stops it.
 *
 * If that process reports a failure or exits before capture_finish(), the cell fails. capture_finish()
 * writes the record `capture` for each interface. sandbox/cell_verdict.py and measure/checks.py read those
 * records: a dropped or truncated packet makes the cell INVALID.
 */
#ifndef NETWARP_CAPTURE_H
#define NETWARP_CAPTURE_H

#include "cell.h"
#include "steps.h"

/* Both return 0, or -1 with the reason set. */
/* Capture every interface that a step `capture` names; returns when every packet socket is bound. */
int capture_begin(struct cell *cell, const struct steps *steps);
/* Drain the capture process, write the records, wait for its exit. Does nothing when none was started. */
int capture_finish(struct cell *cell);

#endif
