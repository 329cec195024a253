/* SPDX-License-Identifier: Apache-2.0 */
/* capture: starts the one capture process, takes its failures, and records its results. */
#ifndef NETWARP_CAPTURE_H
#define NETWARP_CAPTURE_H

#include "cell.h"
#include "steps.h"

/* Both return 0, or -1 with the reason set. */
/* Capture what the steps `capture` say; returns when every socket is bound. */
int capture_begin(struct cell *cell, const struct steps *steps);
/* Drain the capture process, record, and wait for its end; safe to call when there is none. */
int capture_finish(struct cell *cell);

#endif
