/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache: segments of one direction of a connection that the receiver has not acknowledged, in order of their
 * sequence numbers, at most CACHE_MAX or as many as were asked for. agent.c makes one for each connection,
 * snoop.c and mtcp.c fill it and send again from it. Pure.
 */
#ifndef NETWARP_CACHE_H
#define NETWARP_CACHE_H

#include "segment.h"

#define CACHE_MAX 4096

struct cached {
	uint32_t seq, end;
	int64_t sent_ns; /* when it last left towards the receiver */
	unsigned int retransmissions;
	bool by_sender; /* the sender has sent it again itself */
	bool held;	/* it has not left yet */
	uint8_t *data;	/* a copy of the packet */
	size_t len;
};

struct cache {
	struct cached *items; /* [0..count), none overlaps another */
	size_t count, most;
};

/* Returns 0, or -1 without memory. */
int cache_make(struct cache *cache, size_t most);
void cache_clear(struct cache *cache);
void cache_free(struct cache *cache);

/*
 * Put in a copy of the segment, or replace the copy of the one with the same bytes. Returns NULL, and nothing
 * is changed, when there is no room or it overlaps others in part.
 */
struct cached *cache_put(struct cache *cache, const struct segment *segment);

/* The segment that holds byte `seq`, or NULL. */
struct cached *cache_at(const struct cache *cache, uint32_t seq);

/*
 * Drop what ends at or before `ack`. *sent_ns: when the last of them was sent, NO_TIME if any of them was
 * sent more than once (Karn's rule) or none was dropped. Returns how many.
 */
size_t cache_acknowledge(struct cache *cache, uint32_t ack, int64_t *sent_ns);

#define NO_TIME INT64_MIN

/* Round trip of the last hop, and the timeout that follows from it (RFC 6298, with its own lower bound). */
struct round_trip {
	int64_t smoothed_ns; /* 0: no sample yet */
	int64_t variation_ns;
};

void round_trip_sample(struct round_trip *trip, int64_t sample_ns);
int64_t round_trip_timeout(const struct round_trip *trip, int64_t least_ns);

#endif
