/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace: switches on the kernel's tracepoints of SCTP and TCP (trace_buffer.h), and at the end decodes the
 * ring buffer of their events into a file.
 *
 * The buffer is read once, at the end: nothing runs because of the events before that. Their clock is
 * CLOCK_MONOTONIC, which costs virtual time only in process context.
 */
#ifndef NETWARP_TRACE_H
#define NETWARP_TRACE_H

#include "cell.h"
#include "step.h"

/* Both return 0, or -1 with the reason set. */
int trace_begin(struct cell *cell, const struct step_trace *step);
/* Write the file and the record `trace`; safe to call when there is no trace. */
int trace_finish(struct cell *cell);
/* In a cell without a trace: the one clock read that setting the trace's clock costs, so that both cells meet
 * the same random numbers. */
void trace_none(void);

#endif
