// SPDX-License-Identifier: Apache-2.0
/* Documented in sorted.h. */
#include <stdlib.h>
#include <string.h>

#include "formats.h"
#include "sorted.h"

/* Records lie in the order of the file, and so do their bytes. */
static int by_time(const void *one, const void *other)
{
	const struct record *a = one, *b = other;

	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	return a->place < b->place ? -1 : a->place > b->place;
}

/* Room for `more` elements behind `count`. */
static bool grow(void **at, size_t *capacity, size_t count, size_t more, size_t each)
{
	size_t wanted = *capacity ? *capacity : 256;
	void *larger;

	if (count + more <= *capacity)
		return true;
	while (wanted < count + more)
		wanted *= 2;
	larger = realloc(*at, wanted * each);
	if (!larger)
		return false;
	*at = larger;
	*capacity = wanted;
	return true;
}

struct sorted *sorted_read(struct capture_file *capture)
{
	struct sorted *s = calloc(1, sizeof(*s));
	size_t records = 0, bytes = 0, used = 0;
	struct record r;

	if (!s)
		return NULL;
	while (capture_next(capture, &r)) {
		if (!grow((void **)&s->records, &records, s->count, 1, sizeof(r)) ||
		    !grow((void **)&s->bytes, &bytes, used, r.captured + 1, 1))
			goto none;
		memcpy(s->bytes + used, r.data, r.captured);
		r.data = NULL;
		r.place = used;
		if (s->count && r.time_ns < s->records[s->count - 1].time_ns)
			s->backwards++;
		s->records[s->count++] = r;
		used += r.captured + 1; /* so that no two are at one place */
	}
	if (s->count)
		qsort(s->records, s->count, sizeof(r), by_time);
	return s;
none:
	sorted_free(s);
	return NULL;
}

bool sorted_next(struct sorted *s, struct record *r)
{
	if (s->next == s->count)
		return false;
	*r = s->records[s->next++];
	r->data = s->bytes + r->place;
	return true;
}

void sorted_free(struct sorted *s)
{
	if (s) {
		free(s->records);
		free(s->bytes);
	}
	free(s);
}
