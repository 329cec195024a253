/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ranges: a set of 64-bit numbers, kept as sorted, disjoint intervals. A receiver uses it for the message
 * numbers that have arrived: in order they are one interval, however many.
 */
#ifndef NETWARP_RANGES_H
#define NETWARP_RANGES_H

#include <stddef.h>
#include <stdint.h>

struct ranges {
	struct range {
		uint64_t from, to; /* [from, to) */
	} * items;
	size_t count, cap;
	uint64_t members; /* how many numbers are in the set */
};

/* Add `n`. Returns 1: it is new; 0: it was in the set; -1: out of memory. */
int ranges_add(struct ranges *set, uint64_t n);
void ranges_free(struct ranges *set);

#endif
