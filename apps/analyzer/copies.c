// SPDX-License-Identifier: Apache-2.0
/* Documented in copies.h. */
#include "copies.h"

/*
 * A sender gives each IPv4 packet that may be fragmented another identification (RFC 6864 4), also when it
 * sends the same bytes again: equal numbers mean the same packet. Without a number, as in IPv6, only the
 * time can show it: no host retransmits within COPY_UNNUMBERED_NS. In that case every second equal packet
 * counts as a copy, since a host may send equal acknowledgements in a row.
 */
static const int64_t COPY_NUMBERED_NS = 100000000, COPY_UNNUMBERED_NS = 1000000;
enum { TCP_HEADER = 20, CHECKSUM_END = 12, WITH_STAMPS = 32, FLAGS_AT = 13, RST = 4 };

static inline uint64_t load(const uint8_t *at)
{
	uint64_t v;

	__builtin_memcpy(&v, at, sizeof(v));
	return v;
}

/*
 * What a router leaves alone, and not the checksum, which the sender's network card may have filled in
 * between the two: addresses, number and length; ports; TCP's numbers, flags, window, timestamps; SCTP's
 * tag and first chunk.
 */
static inline uint64_t hash_of(const struct packet *p)
{
	uint64_t h = ((uint64_t)p->ip_id << 32 | p->ip_bytes) ^ p->from.low ^ p->from.high;

	h = (h ^ load(p->data)) * 0x9e3779b97f4a7c15u;
	if (p->protocol == PROTOCOL_TCP)
		h += load(p->data + 8) * 0xd6e8feb86659fd93u;
	else if (p->captured >= CHECKSUM_END + 8)
		h += load(p->data + CHECKSUM_END) * 0xd6e8feb86659fd93u;
	if (p->captured >= WITH_STAMPS)
		h ^= load(p->data + WITH_STAMPS - 8) * 0xff51afd7ed558ccdu;
	return (h ^ h >> 32) * 0xd6e8feb86659fd93u;
}

enum { NUMBERED = 1, TAKEN = 2 }; /* a hash's lowest bits in its slot */

bool is_copy(struct nwa *a, const struct packet *p)
{
	uint16_t number = (uint16_t)(p->ip_id >> 16);
	struct recent *slot;
	bool numbered;
	int64_t age;
	uint64_t h;

	if (p->captured < (p->protocol == PROTOCOL_TCP ? TCP_HEADER : CHECKSUM_END))
		return false;
	if (p->protocol == PROTOCOL_TCP && !number && p->data[FLAGS_AT] & RST)
		return false; /* a host answers each segment with an equal reset (RFC 9293 3.5.2) */
	h = (hash_of(p) | TAKEN) & ~(uint64_t)NUMBERED;
	slot = &a->recent[h >> 54];
	age = (int64_t)((uint64_t)p->time_ns -
			(uint64_t)slot->time_ns); /* times may be at both ends of 64 bits */
	if ((slot->hash & ~(uint64_t)NUMBERED) == h) {
		numbered = slot->hash & NUMBERED;
		if (age < (numbered ? COPY_NUMBERED_NS : COPY_UNNUMBERED_NS) && age > -COPY_NUMBERED_NS) {
			if (!numbered)
				slot->hash = 0;
			return true;
		}
	}
	/* a host that gives all of its packets one number does not number them */
	numbered = number && number != a->last_number;
	a->last_number = number;
	*slot = (struct recent){.hash = h | (numbered ? NUMBERED : 0), .time_ns = p->time_ns};
	return false;
}
