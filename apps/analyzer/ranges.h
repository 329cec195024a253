/*
 * What one sender has sent so far: disjoint ranges [lo, hi) of unwrapped numbers (bytes of TCP, TSNs of
 * SCTP), each with the path of its first transmission. In order this is one range however long the transfer.
 */
#ifndef ANALYZER_RANGES_H
#define ANALYZER_RANGES_H

#include <stdbool.h>
#include <stdint.h>

struct range {
	int64_t lo, hi;
	uint32_t path;
};

/* Ranges live in runs of at most RUN_RANGES, so that one in the middle costs a short memmove, whatever their
 * number. */
struct range_run {
	struct range *ranges;
	uint32_t count, capacity;
};

struct ranges {
	struct range last; /* the highest one; empty when lo == hi. All others, all below it, are in runs */
	struct range_run *runs;
	uint32_t count, capacity;
	bool failed; /* no memory */
};

void ranges_free(struct ranges *s);
uint64_t ranges_add_slow(struct ranges *s, int64_t lo, int64_t hi, uint32_t path, uint32_t *first_path);

/*
 * Add [lo, hi), lo < hi. Returns how many of its units were not there before; *first_path is set to the path
 * of the lowest unit that was (left alone if none was).
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
