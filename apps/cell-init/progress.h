/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress: from T0 on, a console line at each mark; and with ticks, a timer that fires at each tick, to
 * record how late the host makes what happens between the steps: the record `ticks`.
 */
#ifndef NETWARP_PROGRESS_H
#define NETWARP_PROGRESS_H

#include "cell.h"
#include "step.h"

/* `on_mark` is called at each mark. Returns 0, or -1 with the reason set. */
int progress_begin(struct cell *cell, const struct step_progress *step, void (*on_mark)(void));
/* No later tick counts. */
void progress_end_ticks(void);
/* The record; none without ticks. */
void progress_record_ticks(struct cell *cell);

#endif
