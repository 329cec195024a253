// SPDX-License-Identifier: Apache-2.0
/* Documented in mappings.h. */
#include <stdlib.h>
#include <string.h>

#include "mappings.h"

/* More mappings than any window can hold. Beyond it the lowest ones are dropped: they are not sent again. */
enum { MAPPINGS_MAX = 16384 };

/* The number of mappings that end at or before `seq`. */
static uint32_t before(const struct mappings *m, int64_t seq)
{
	uint32_t low = 0, high = m->count;

	if (high && m->list[high - 1].end <= seq) /* as a rule what is sent is new */
		return high;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (m->list[middle].end <= seq)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Puts a mapping, which overlaps none, at place `at`, or joins it to its neighbours. */
static bool insert(struct mappings *m, uint32_t at, const struct mapping *new)
{
	struct mapping *previous = at ? &m->list[at - 1] : NULL, *next = at < m->count ? &m->list[at] : NULL;

	if (previous && previous->end == new->seq &&
	    previous->dsn + (uint64_t)(new->seq - previous->seq) == new->dsn) {
		previous->end = new->end;
		return true;
	}
	if (next && next->seq == new->end &&new->dsn + (uint64_t)(new->end - new->seq) == next->dsn) {
		next->seq = new->seq;
		next->dsn = new->dsn;
		return true;
	}
	if (m->count == m->capacity) {
		uint32_t capacity = m->capacity ? m->capacity * 2 : 4;
		struct mapping *list = realloc(m->list, capacity * sizeof(*list));

		if (!list)
			return false;
		m->list = list;
		m->capacity = capacity;
	}
	memmove(&m->list[at + 1], &m->list[at], (m->count - at) * sizeof(*m->list));
	m->list[at] = *new;
	m->count++;
	return true;
}

bool mappings_add(struct mappings **to, const struct mapping *new)
{
	struct mapping rest = *new;
	struct mappings *m = *to;

	if (!m)
		m = *to = calloc(1, sizeof(*m));
	if (!m)
		return false;
	m->last_dsn = new->dsn;
	if (m->count >= MAPPINGS_MAX) {
		m->count -= MAPPINGS_MAX / 2;
		memmove(m->list, m->list + MAPPINGS_MAX / 2, m->count * sizeof(*m->list));
	}
	while (rest.seq < rest.end) { /* the pieces of it that were not mapped before */
		uint32_t at = before(m, rest.seq);
		struct mapping piece = rest;
		int64_t covered = rest.seq;

		if (at < m->count && m->list[at].seq <= rest.seq) {
			covered = m->list[at].end;
		} else {
			if (at < m->count && m->list[at].seq < piece.end)
				piece.end = m->list[at].seq;
			if (!insert(m, at, &piece))
				return false;
			covered = piece.end;
		}
		rest.dsn += (uint64_t)(covered - rest.seq);
		rest.seq = covered;
	}
	return true;
}

bool mappings_find(const struct mappings *m, int64_t seq, uint64_t *dsn)
{
	uint32_t at;

	if (!m)
		return false;
	at = before(m, seq);
	if (at == m->count || m->list[at].seq > seq)
		return false;
	*dsn = m->list[at].dsn + (uint64_t)(seq - m->list[at].seq);
	return true;
}

void mappings_free(struct mappings *m)
{
	if (m)
		free(m->list);
	free(m);
}
