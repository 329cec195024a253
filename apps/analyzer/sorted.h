/* SPDX-License-Identifier: Apache-2.0 */
/* All records of a capture file, sorted by time (option NWA_SORT). */
#ifndef ANALYZER_SORTED_H
#define ANALYZER_SORTED_H

#include "capture_file.h"

struct sorted {
	struct record *records;
	uint8_t *bytes; /* the packets' bytes; a record's `place` is an offset in it */
	size_t count, next;
	uint64_t
	    backwards; /* records whose time is earlier than that of the record before them in the file */
};

/*
 * Read the file to its end into memory and sort its records; equal times keep the order of the file. NULL:
 * no memory.
 */
struct sorted *sorted_read(struct capture_file *capture);
bool sorted_next(struct sorted *s, struct record *r);
void sorted_free(struct sorted *s);

#endif
