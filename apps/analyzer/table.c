/* Growing arrays: doubled by realloc, which for large ones moves page tables and not bytes. */
#include <stdlib.h>

#include "table.h"

enum { FIRST_ROWS = 64 };

void *table_grow(struct table *t)
{
	uint64_t capacity = t->capacity ? t->capacity * 2 : FIRST_ROWS;
	uint8_t *rows;

	if (!t->wanted)
		return t->scratch;
	if (t->full || t->count >= NWA_NONE - 1)
		goto full;
	rows = realloc(t->rows, capacity * t->row_bytes);
	if (!rows)
		goto full;
	t->rows = rows;
	t->capacity = capacity;
	return t->rows + t->count++ * t->row_bytes;
full:
	t->full = true;
	return t->scratch;
}

void table_free(struct table *t)
{
	free(t->rows);
	t->rows = NULL;
	t->count = t->capacity = 0;
}
