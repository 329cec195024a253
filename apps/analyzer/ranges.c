// SPDX-License-Identifier: Apache-2.0
/* Sets of ranges: the cases that are not in order: new ranges after a gap, filled gaps, repeated numbers. */
#include <stdlib.h>
#include <string.h>

#include "ranges.h"

enum { RUN_RANGES = 256, FIRST_RANGES = 8 };

void ranges_free(struct ranges *s)
{
	for (uint32_t i = 0; i < s->count; i++)
		free(s->runs[i].ranges);
	free(s->runs);
	*s = (struct ranges){0};
}

/* An empty run at `at`. */
static bool run_insert(struct ranges *s, uint32_t at)
{
	if (s->count == s->capacity) {
		uint32_t capacity = s->capacity ? s->capacity * 2 : 4;
		struct range_run *runs = realloc(s->runs, capacity * sizeof(*runs));

		if (!runs)
			return false;
		s->runs = runs;
		s->capacity = capacity;
	}
	memmove(&s->runs[at + 1], &s->runs[at], (s->count - at) * sizeof(*s->runs));
	s->runs[at] = (struct range_run){0};
	s->count++;
	return true;
}

static void run_remove(struct ranges *s, uint32_t at)
{
	free(s->runs[at].ranges);
	memmove(&s->runs[at], &s->runs[at + 1], (s->count - at - 1) * sizeof(*s->runs));
	s->count--;
}

static bool run_room(struct range_run *run)
{
	uint32_t capacity = run->capacity ? run->capacity * 2 : FIRST_RANGES;
	struct range *ranges;

	if (run->count < run->capacity)
		return true;
	ranges = realloc(run->ranges, capacity * sizeof(*ranges));
	if (!ranges)
		return false;
	run->ranges = ranges;
	run->capacity = capacity;
	return true;
}

/*
 * Insert `r` before place (run, at), joining it to a neighbour it touches. (run, at) is then the range that
 * took it in, or the one after it. Returns false without memory.
 */
static bool place(struct ranges *s, uint32_t *run_at, uint32_t *at, struct range r)
{
	struct range_run *run;

	if (*run_at == s->count && s->count && s->runs[s->count - 1].count < RUN_RANGES) {
		*run_at = s->count - 1;
		*at = s->runs[*run_at].count;
	}
	if (*run_at == s->count && !run_insert(s, s->count))
		return false;
	run = &s->runs[*run_at];
	if (*at && run->ranges[*at - 1].hi == r.lo && run->ranges[*at - 1].path == r.path) {
		run->ranges[*at - 1].hi = r.hi;
		if (*at < run->count && run->ranges[*at].lo == r.hi && run->ranges[*at].path == r.path) {
			run->ranges[*at - 1].hi = run->ranges[*at].hi;
			memmove(&run->ranges[*at], &run->ranges[*at + 1], (run->count - *at - 1) * sizeof(r));
			run->count--;
		}
		--*at;
		return true;
	}
	if (*at < run->count && run->ranges[*at].lo == r.hi && run->ranges[*at].path == r.path) {
		run->ranges[*at].lo = r.lo;
		return true;
	}
	if (run->count == RUN_RANGES) {
		struct range_run *upper;
		uint32_t half = RUN_RANGES / 2;

		if (!run_insert(s, *run_at + 1))
			return false;
		run = &s->runs[*run_at];
		upper = run + 1;
		upper->ranges = malloc(RUN_RANGES * sizeof(r));
		if (!upper->ranges) {
			run_remove(s, *run_at + 1);
			return false;
		}
		upper->capacity = RUN_RANGES;
		memcpy(upper->ranges, run->ranges + half, half * sizeof(r));
		upper->count = half;
		run->count = half;
		if (*at > half) {
			*at -= half;
			run = &s->runs[++*run_at];
		}
	}
	if (!run_room(run))
		return false;
	memmove(&run->ranges[*at + 1], &run->ranges[*at], (run->count - *at) * sizeof(r));
	run->ranges[(*at)++] = r;
	run->count++;
	return true;
}

/* The first range that ends above lo: its place; (count, 0) if none. */
static void find(const struct ranges *s, int64_t lo, uint32_t *run_at, uint32_t *at)
{
	uint32_t low = 0, high = s->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct range_run *run = &s->runs[middle];

		if (run->ranges[run->count - 1].hi <= lo)
			low = middle + 1;
		else
			high = middle;
	}
	*run_at = low;
	*at = 0;
	if (low == s->count)
		return;
	high = s->runs[low].count;
	low = 0;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (s->runs[*run_at].ranges[middle].hi <= lo)
			low = middle + 1;
		else
			high = middle;
	}
	*at = low;
}

/* `last` moves down into the runs, because something begins above it. */
static bool settle_last(struct ranges *s)
{
	uint32_t run_at = s->count, at = 0;

	if (s->last.lo == s->last.hi)
		return true;
	return place(s, &run_at, &at, s->last);
}

uint64_t ranges_add_slow(struct ranges *s, int64_t lo, int64_t hi, uint32_t path, uint32_t *first_path)
{
	uint64_t fresh = 0;
	uint32_t run_at, at;
	bool seen = false;

	if (s->last.lo == s->last.hi || lo >= s->last.hi) {
		if (!settle_last(s))
			s->failed = true;
		s->last = (struct range){.lo = lo, .hi = hi, .path = path};
		return (uint64_t)(hi - lo);
	}
	if (lo < s->last.lo) {
		int64_t end = hi < s->last.lo ? hi : s->last.lo;

		find(s, lo, &run_at, &at);
		while (lo < end) {
			struct range *r = run_at < s->count ? &s->runs[run_at].ranges[at] : NULL;

			if (r && r->lo <= lo) {
				if (!seen)
					*first_path = r->path;
				seen = true;
				lo = r->hi < end ? r->hi : end;
				at++;
			} else {
				struct range gap = {
				    .lo = lo, .hi = r && r->lo < end ? r->lo : end, .path = path};

				fresh += (uint64_t)(gap.hi - gap.lo);
				lo = gap.hi;
				if (gap.hi == s->last.lo && path == s->last.path) {
					s->last.lo = gap.lo;
				} else if (!place(s, &run_at, &at, gap)) {
					s->failed = true;
					return fresh;
				}
			}
			while (run_at < s->count &&
			       (at >= s->runs[run_at].count || s->runs[run_at].ranges[at].hi <= lo)) {
				if (++at >= s->runs[run_at].count) {
					run_at++;
					at = 0;
				}
			}
		}
	}
	if (hi > s->last.lo) {
		if (lo < hi && lo < s->last.hi && !seen)
			*first_path = s->last.path;
		if (hi > s->last.hi) {
			fresh += (uint64_t)(hi - s->last.hi);
			if (path == s->last.path) {
				s->last.hi = hi;
			} else {
				struct range above = {.lo = s->last.hi, .hi = hi, .path = path};

				if (!settle_last(s))
					s->failed = true;
				s->last = above;
			}
		}
	}
	/* A last range that now touches the one below it takes it in: a filled hole leaves one range again.
	 */
	while (s->count) {
		struct range_run *run = &s->runs[s->count - 1];

		if (run->count && (run->ranges[run->count - 1].hi != s->last.lo ||
				   run->ranges[run->count - 1].path != s->last.path))
			break;
		if (run->count)
			s->last.lo = run->ranges[--run->count].lo;
		if (!run->count)
			run_remove(s, s->count - 1);
	}
	return fresh;
}
