/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The set of numbers that a sender has sent so far: disjoint ranges [lo, hi) of 64-bit numbers (TCP: bytes,
 * SCTP: TSNs), each with the path of its first transmission. A transfer without gaps on one path is one
 * range.
 */
#ifndef ANALYZER_RANGES_H
#define ANALYZER_RANGES_H

#include <stdbool.h>
#include <stdint.h>

struct range {
	int64_t lo, hi;
	uint32_t path;
};

/*
 * A block of at most RUN_RANGES (ranges.c) ranges: inserting one moves only the ranges of its block,
 * however many there are.
 */
struct range_run {
	struct range *ranges;
	uint32_t count, capacity;
};

struct ranges {
	struct range last; /* the highest range; lo == hi: none yet. All others are in .runs */
	struct range_run *runs;
	uint32_t count, capacity;
	bool failed; /* no memory */
};

void ranges_free(struct ranges *s);
uint64_t ranges_add_slow(struct ranges *s, int64_t lo, int64_t hi, uint32_t path, uint32_t *first_path);

/*
 * Add [lo, hi), lo < hi. Returns how many of its numbers are new. *first_path is set to the path of the
 * lowest number that is not new, and is unchanged if all are new.
 */
static inline uint64_t ranges_add(struct ranges *s, int64_t lo, int64_t hi, uint32_t path,
				  uint32_t *first_path)
{
	if (lo == s->last.hi && path == s->last.path && s->last.lo != s->last.hi) {
		s->last.hi = hi;
		return (uint64_t)(hi - lo);
	}
	return ranges_add_slow(s, lo, hi, path, first_path);
}

#endif
