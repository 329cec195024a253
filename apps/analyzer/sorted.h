/* All records of a capture file in the order of their times. */
#ifndef ANALYZER_SORTED_H
#define ANALYZER_SORTED_H

#include "capture_file.h"

struct sorted {
	struct record *records;
	uint8_t *bytes; /* what their `data` point to */
	size_t count, next;
	uint64_t backwards; /* records whose time is before the record before, in the file */
};

/* Reads the file to its end. NULL: no memory. Equal times stay in the order of the file. */
struct sorted *sorted_read(struct capture_file *capture);
bool sorted_next(struct sorted *s, struct record *r);
void sorted_free(struct sorted *s);

#endif
