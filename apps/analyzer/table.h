/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Growing arrays of rows. A table that is not wanted returns the same scratch row for every push, so
 * callers need not check.
 */
#ifndef ANALYZER_TABLE_H
#define ANALYZER_TABLE_H

#include <stdbool.h>
#include "netwarp_analyzer.h"

struct table {
	uint8_t *rows;
	uint64_t count; /* number of rows; 0 in a table that is not wanted */
	uint64_t capacity;
	uint64_t mapped_bytes; /* size of the mapping of a large table; 0: rows are malloced */
	uint32_t row_bytes;
	bool wanted;
	bool full; /* no memory, or 2^32 - 1 rows: pushes return the scratch row, and the reader must stop */
	_Alignas(16) uint8_t scratch[256];
};

void *table_grow(struct table *t);
void table_free(struct table *t);

/* Append a row; the caller must fill all of it. Never NULL. */
static inline void *table_push(struct table *t)
{
	if (t->wanted && t->count < t->capacity)
		return t->rows + t->count++ * t->row_bytes;
	return table_grow(t);
}

static inline void *table_row(const struct table *t, uint64_t row)
{
	return t->rows + row * t->row_bytes;
}

#endif
