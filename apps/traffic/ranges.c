// SPDX-License-Identifier: Apache-2.0
/* Documented in ranges.h. */
#include "ranges.h"

#include <stdlib.h>
#include <string.h>

/* Index of the first interval that ends at `n` or later. */
static size_t locate(const struct ranges *set, uint64_t n)
{
	size_t low = 0, high = set->count, middle;

	/* messages nearly always come in order: the last interval is the one */
	if (high > 0 && set->items[high - 1].from <= n)
		return set->items[high - 1].to >= n ? high - 1 : high;
	while (low < high) {
		middle = (low + high) / 2;
		if (set->items[middle].to < n)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int insert(struct ranges *set, size_t at, uint64_t n)
{
	struct range *items = set->items;
	size_t cap = set->cap;

	if (set->count == cap) {
		cap = cap ? 2 * cap : 8;
		items = realloc(items, cap * sizeof(*items));
		if (!items)
			return -1;
		set->items = items;
		set->cap = cap;
	}
	memmove(items + at + 1, items + at, (set->count - at) * sizeof(*items));
	items[at].from = n;
	items[at].to = n + 1;
	set->count++;
	return 0;
}

int ranges_add(struct ranges *set, uint64_t n)
{
	size_t i = locate(set, n);
	struct range *items = set->items;

	if (i < set->count && items[i].from <= n && n < items[i].to)
		return 0;
	if (i < set->count && items[i].to == n) {
		items[i].to++;
		if (i + 1 < set->count && items[i + 1].from == n + 1) {
			items[i].to = items[i + 1].to;
			memmove(items + i + 1, items + i + 2, (set->count - i - 2) * sizeof(*items));
			set->count--;
		}
	} else if (i < set->count && items[i].from == n + 1) {
		items[i].from = n;
	} else if (insert(set, i, n)) {
		return -1;
	}
	set->members++;
	return 1;
}

void ranges_free(struct ranges *set)
{
	free(set->items);
	memset(set, 0, sizeof(*set));
}
