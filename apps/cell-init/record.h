/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record: writes init.ndjson (docs/formats.md, "init.ndjson"), the record of what happened in the cell, one
 * line per record. ndjson_begin(&cell->out, ...) or record_begin_step() begins a record; record_end_line()
 * writes it. The parent reads the file after the cell has ended; a file without the record `end` was cut
 * off.
 */
#ifndef NETWARP_RECORD_H
#define NETWARP_RECORD_H

#include "cell.h"

/*
 * Create the file, and init.reserve of 64 KiB, which is given back when the disk is full so that the last
 * records still fit. All return 0, or -1 with the cell's reason set.
 */
int record_open(struct cell *cell);
/* Write the record `start`: the first line. */
int record_start(struct cell *cell);
/* Begin a record named `record`, with the line of the step that is being carried out as its member `step`. */
void record_begin_step(struct cell *cell, const char *record);
/* Add a member: realtime_ns - T0 in nanoseconds; null while T0 is not known. */
void record_t(struct cell *cell, const char *key, int64_t realtime_ns);
/* Write the record. -1 also when the disk was full and the reserve was used: the cell then ends. */
int record_end_line(struct cell *cell);
/* Write the record `end`, the last line, then fsync. Remove init.reserve. */
void record_end(struct cell *cell);

#endif
