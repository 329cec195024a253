/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record: init.ndjson (docs/formats.md): what really happened, a line at a time. A record is begun by
 * ndjson_begin(&cell->out, ...) or record_begin_step(), and written by record_end_line().
 */
#ifndef NETWARP_RECORD_H
#define NETWARP_RECORD_H

#include "cell.h"

/* Create the file. All return 0, or -1 with the cell's reason set. */
int record_open(struct cell *cell);
/* The record `start`. */
int record_start(struct cell *cell);
/* Begin a record of the step that is carried out: its member `step`. */
void record_begin_step(struct cell *cell, const char *record);
/* A member: nanoseconds from T0; null before T0 is known. */
void record_t(struct cell *cell, const char *key, int64_t realtime_ns);
int record_end_line(struct cell *cell);
/* The record `end`, fsync. */
void record_end(struct cell *cell);

#endif
