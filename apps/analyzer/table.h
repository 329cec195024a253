/* Growing arrays of rows. A table that is not wanted hands out one scratch row again and again. */
#ifndef ANALYZER_TABLE_H
#define ANALYZER_TABLE_H

#include <stdbool.h>
#include "netwarp_analyzer.h"

struct table {
	uint8_t *rows;
	uint64_t count; /* rows held; of an unwanted table always 0 */
	uint64_t capacity;
	uint64_t mapped_bytes; /* 0: rows are malloced */
	uint32_t row_bytes;
	bool wanted;
	bool full; /* no memory, or 2^32 - 1 rows: the scratch row is handed out, the reader must stop */
	_Alignas(16) uint8_t scratch[256];
};

void *table_grow(struct table *t);
void table_free(struct table *t);

/* The next row, to be filled whole by the caller; never NULL. */
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
