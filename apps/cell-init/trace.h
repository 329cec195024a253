/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace: switches on the kernel's tracepoints of SCTP and TCP (trace_buffer.h), and at the end of the cell
 * decodes the kernel's ring buffer of events into a file, which
 * orchestrator/netwarp/measure/kernel_samples.py reads. Guests only.
 *
 * The buffer is read once, at the end: until then no event wakes a process, so captures are the same with
 * and without a trace. The kernel stamps events with CLOCK_MONOTONIC, which costs virtual time only when it
 * is read in process context. Events that do not fit in the buffer are lost and counted.
 */
#ifndef NETWARP_TRACE_H
#define NETWARP_TRACE_H

#include "cell.h"
#include "step.h"

/* Both return 0, or -1 with the cell's reason set. */
int trace_begin(struct cell *cell, const struct step_trace *step);
/* Write the file and the record `trace`; nothing when trace_begin() was not called. */
int trace_finish(struct cell *cell);
/*
 * Called in a cell without a trace: read the clock once, as the kernel does when trace_begin() sets the
 * trace's clock. The read advances virtual time; without it the two cells would differ by 256 ns and draw
 * other random numbers.
 */
void trace_none(void);

#endif
