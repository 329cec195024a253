// SPDX-License-Identifier: Apache-2.0
/*
 * The fingerprint of a packet: a hash of the fields that no router changes, by which other captures find it
 * again.
 */
#include "identity.h"
#include "map.h"

enum { HASHED_BYTES = 64 }; /* a packet captured shorter than that is only found where it was cut alike */

/* Where the transport's checksum is: hosts that leave it to the network card have a wrong one there. */
static uint32_t checksum_place(uint8_t protocol, uint32_t *bytes)
{
	*bytes = protocol == PROTOCOL_SCTP ? 4 : 2;
	switch (protocol) {
	case PROTOCOL_TCP:
		return 16;
	case PROTOCOL_UDP:
		return 6;
	case PROTOCOL_SCTP:
		return 8;
	default:
		*bytes = 0;
		return 0;
	}
}

static uint64_t fingerprint(const struct packet *p)
{
	uint64_t word[HASHED_BYTES / 8] = {0}, h;
	uint32_t bytes = p->captured < HASHED_BYTES ? p->captured : HASHED_BYTES, at, width;

	h = map_mix(p->from.high + 1) ^ p->from.low;
	h = map_mix(h) ^ p->to.high;
	h = map_mix(h) ^ p->to.low;
	h = map_mix(h) ^ ((uint64_t)p->ip_id << 32 | p->ip_bytes);
	if (p->marks & NWA_MARK_FRAGMENT) /* `data` may be the whole datagram's by now: its own number and
					     offset identify it */
		return map_mix(map_mix(h ^ p->fragment_id) ^
			       ((uint64_t)p->fragment_offset << 1 | p->fragment_more));
	h = map_mix(h) ^ p->protocol;
	__builtin_memcpy(word, p->data, bytes);
	at = checksum_place(p->protocol, &width);
	if (at + width <= bytes)
		__builtin_memset((uint8_t *)word + at, 0, width);
	for (uint32_t i = 0; i < HASHED_BYTES / 8; i++)
		h = map_mix(h) ^ word[i];
	return map_mix(h);
}

void identity_take(struct nwa *a, const struct packet *p, uint32_t flow, uint32_t path,
		   uint8_t path_direction)
{
	struct table *t = &a->tables[nwa_table_identities];
	struct nwa_identity *row;

	if (!t->wanted || !p->ip_bytes)
		return;
	row = table_push(t);
	*row = (struct nwa_identity){.time_ns = p->time_ns,
				     .fingerprint = fingerprint(p),
				     .packet = p->number,
				     .flow = flow,
				     .path = path,
				     .ip_bytes = p->ip_bytes,
				     .path_direction = path_direction,
				     .hop_limit = p->hop_limit};
}
