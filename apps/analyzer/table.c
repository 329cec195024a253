// SPDX-License-Identifier: Apache-2.0
/*
 * Growing arrays of rows. Small arrays use realloc(). Large ones are mappings of their own, aligned to a
 * huge page, which grow by moving page tables and not bytes (mremap). They ask for huge pages, because a
 * page fault per 4 KiB costs more than filling the rows. Without huge pages they work in the same way with
 * small ones.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "table.h"

enum { FIRST_ROWS = 64 };
static const size_t HUGE_PAGE = 2 << 20, MAP_FROM = 1 << 20;

/* `bytes` (a multiple of HUGE_PAGE) of address space at a multiple of HUGE_PAGE; MAP_FAILED: none. */
static uint8_t *map_aligned(size_t bytes)
{
	uint8_t *found = mmap(NULL, bytes + HUGE_PAGE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	size_t before;

	if (found == MAP_FAILED)
		return MAP_FAILED;
	before = -(uintptr_t)found & (HUGE_PAGE - 1);
	if (before)
		(void)munmap(found, before);
	if (before < HUGE_PAGE)
		(void)munmap(found + before + bytes, HUGE_PAGE - before);
	(void)madvise(found + before, bytes, MADV_HUGEPAGE);
	return found + before;
}

/* Moves the rows to room for `bytes`. */
static bool grow_mapped(struct table *t, size_t bytes)
{
	uint8_t *to;

	bytes = (bytes + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
	to = map_aligned(bytes);
	if (to == MAP_FAILED)
		return false;
	if (t->mapped_bytes) {
		if (mremap(t->rows, t->mapped_bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) ==
		    MAP_FAILED) {
			(void)munmap(to, bytes);
			return false;
		}
	} else if (t->rows) {
		memcpy(to, t->rows, t->count * t->row_bytes);
		free(t->rows);
	}
	t->rows = to;
	t->mapped_bytes = bytes;
	t->capacity = bytes / t->row_bytes;
	return true;
}

void *table_grow(struct table *t)
{
	uint64_t capacity = t->capacity ? t->capacity * 2 : FIRST_ROWS;
	uint8_t *rows;

	if (!t->wanted)
		return t->scratch;
	if (t->full || t->count >= NWA_NONE - 1)
		goto full;
	if (capacity * t->row_bytes >= MAP_FROM) {
		if (!grow_mapped(t, capacity * t->row_bytes))
			goto full;
	} else {
		rows = realloc(t->rows, capacity * t->row_bytes);
		if (!rows)
			goto full;
		t->rows = rows;
		t->capacity = capacity;
	}
	return t->rows + t->count++ * t->row_bytes;
full:
	t->full = true;
	return t->scratch;
}

void table_free(struct table *t)
{
	if (t->mapped_bytes)
		(void)munmap(t->rows, t->mapped_bytes);
	else
		free(t->rows);
	t->rows = NULL;
	t->count = t->capacity = t->mapped_bytes = 0;
}
