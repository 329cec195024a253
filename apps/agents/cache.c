// SPDX-License-Identifier: Apache-2.0
/* Documented in cache.h. */
#include "cache.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_TIMEOUT_NS INT64_C(1000000000) /* RFC 6298, 2.1 */

int cache_make(struct cache *cache, size_t most)
{
	*cache = (struct cache){.items = calloc(most, sizeof(*cache->items)), .most = most};
	return cache->items ? 0 : -1;
}

void cache_clear(struct cache *cache)
{
	size_t i;

	for (i = 0; i < cache->count; i++)
		free(cache->items[i].data);
	cache->count = 0;
}

void cache_free(struct cache *cache)
{
	cache_clear(cache);
	free(cache->items);
	*cache = (struct cache){0};
}

static bool copy(struct cached *item, const struct segment *segment)
{
	uint8_t *data = malloc(segment->len);

	if (!data)
		return false;
	memcpy(data, segment->data, segment->len);
	free(item->data);
	item->data = data;
	item->len = segment->len;
	return true;
}

struct cached *cache_put(struct cache *cache, const struct segment *segment)
{
	uint32_t seq = segment->seq, end = segment_end(segment);
	struct cached *item, fresh = {.seq = seq, .end = end};
	size_t i = cache->count;

	if (seq == end)
		return NULL;
	while (i > 0 && seq_before(seq, cache->items[i - 1].end))
		i--; /* items[i..] end behind `seq` */
	item = &cache->items[i];
	if (i < cache->count && item->seq == seq && item->end == end)
		return copy(item, segment) ? item : NULL;
	if (cache->count == cache->most || (i < cache->count && seq_before(item->seq, end)) ||
	    !copy(&fresh, segment))
		return NULL;
	memmove(item + 1, item, (cache->count - i) * sizeof(*item));
	cache->count++;
	*item = fresh;
	return item;
}

struct cached *cache_at(const struct cache *cache, uint32_t seq)
{
	size_t i;

	for (i = 0; i < cache->count && !seq_before(seq, cache->items[i].seq); i++)
		if (seq_before(seq, cache->items[i].end))
			return &cache->items[i];
	return NULL;
}

size_t cache_acknowledge(struct cache *cache, uint32_t ack, int64_t *sent_ns)
{
	bool again = false;
	size_t dropped;

	*sent_ns = NO_TIME;
	for (dropped = 0; dropped < cache->count && !seq_before(ack, cache->items[dropped].end); dropped++) {
		again |= cache->items[dropped].retransmissions || cache->items[dropped].by_sender ||
			 cache->items[dropped].held;
		*sent_ns = cache->items[dropped].sent_ns;
		free(cache->items[dropped].data);
	}
	if (again)
		*sent_ns = NO_TIME;
	cache->count -= dropped;
	memmove(cache->items, cache->items + dropped, cache->count * sizeof(*cache->items));
	return dropped;
}

void round_trip_sample(struct round_trip *trip, int64_t sample_ns)
{
	int64_t error = sample_ns - trip->smoothed_ns;

	if (!trip->smoothed_ns) {
		trip->smoothed_ns = sample_ns;
		trip->variation_ns = sample_ns / 2;
		return;
	}
	trip->variation_ns += ((error < 0 ? -error : error) - trip->variation_ns) / 4;
	trip->smoothed_ns += error / 8;
}

int64_t round_trip_timeout(const struct round_trip *trip, int64_t least_ns)
{
	int64_t timeout = trip->smoothed_ns ? trip->smoothed_ns + 4 * trip->variation_ns : FIRST_TIMEOUT_NS;

	return timeout < least_ns ? least_ns : timeout;
}
