// SPDX-License-Identifier: Apache-2.0
/* Documented in copies.h. */
#include "copies.h"
#include "sctp_chunks.h"

/*
 * A sender gives each IPv4 packet that may be fragmented another identification (RFC 6864 4), also when it
 * sends the same bytes again: equal numbers mean the same packet. Without a number, as in IPv6, only the
 * time can show it: no host sends data again within COPY_UNNUMBERED_NS, and none within COPY_KNOWN_NS where
 * KNOWN packets before came several times. One that passed a router in between is no retransmission.
 *
 * A host may send equal acknowledgements in a row, though. Of those as many are one packet as there were of
 * the others on the same way.
 */
static const int64_t COPY_NUMBERED_NS = 100000000, COPY_KNOWN_NS = 5000000, COPY_UNNUMBERED_NS = 1000000;
enum { TCP_HEADER = 20, CHECKSUM_END = 12, WITH_STAMPS = 32, HASHED = 64 };
enum { OFFSET_AT = 12, FLAGS_AT = 13, SYN_OR_FIN = 3, RST = 4 };
enum { KNOWN = 4, WAYS = 8 };

static inline uint64_t load(const uint8_t *at)
{
	uint64_t v;

	__builtin_memcpy(&v, at, sizeof(v));
	return v;
}

/*
 * What a router leaves alone, and not the checksum, which the sender's network card may have filled in
 * between the two: addresses, number and length; ports; TCP's numbers, flags, window, timestamps; SCTP's
 * tag and first chunks. Of a SYN's options a router may change the MSS.
 */
static inline uint64_t hash_of(const struct packet *p)
{
	uint64_t h = ((uint64_t)p->ip_id << 32 | p->ip_bytes) ^ p->from.low ^ p->from.high;
	uint32_t at = CHECKSUM_END + 8;

	h = (h ^ load(p->data)) * 0x9e3779b97f4a7c15u;
	if (p->protocol == PROTOCOL_TCP)
		h += load(p->data + 8) * 0xd6e8feb86659fd93u;
	else if (p->captured >= CHECKSUM_END + 8)
		h += load(p->data + CHECKSUM_END) * 0xd6e8feb86659fd93u;
	if (p->protocol == PROTOCOL_TCP && p->captured >= WITH_STAMPS)
		h ^= load(p->data + WITH_STAMPS - 8) * 0xff51afd7ed558ccdu;
	if (p->protocol == PROTOCOL_TCP)
		at = WITH_STAMPS;
	for (; at + 4 <= p->captured && at < HASHED; at += 4)
		h = (h ^ get_be32(p->data + at)) * 0x9e3779b97f4a7c15u;
	return (h ^ h >> 32) * 0xd6e8feb86659fd93u;
}

/* Whether a host may send the same within no time: acknowledgements, and what answers any packet. */
static bool may_be_equal(const struct packet *p)
{
	if (p->protocol == PROTOCOL_TCP)
		return !(p->data[FLAGS_AT] & SYN_OR_FIN) && p->length <= (p->data[OFFSET_AT] >> 4) * 4u;
	return p->data[CHECKSUM_END] == CHUNK_SACK || p->data[CHECKSUM_END] == CHUNK_ABORT ||
	       p->data[CHECKSUM_END] == CHUNK_SHUTDOWN_COMPLETE;
}

static struct times_captured *of_way(struct nwa *a, const struct address *from, const struct address *to)
{
	uint64_t h = (from->low ^ from->high) * 0x9e3779b97f4a7c15u + (to->low ^ to->high);

	return &a->times_captured[(h * 0xd6e8feb86659fd93u) >> 56];
}

/* How often a packet from the one to the other address is captured, by those that are the same for sure. */
static uint8_t usual(struct nwa *a, const struct packet *p)
{
	const struct times_captured *there = of_way(a, &p->from, &p->to), *back = of_way(a, &p->to, &p->from);

	if (there->packets)
		return there->most;
	if (back->packets)
		return back->most;
	if (a->any_way.packets)
		return a->any_way.most;
	/* a host answers each segment with an equal reset (RFC 9293 3.5.2) */
	return p->protocol == PROTOCOL_TCP && p->data[FLAGS_AT] & RST ? 1 : 2;
}

enum { NUMBERED = 1, TAKEN = 2 }; /* a hash's lowest bits in its slot */

/* The packet's slot among the WAYS that its hash may have: its own, or the oldest. */
static struct recent *slot_of(struct nwa *a, uint64_t h)
{
	struct recent *first = &a->recent[(h >> (64 - RECENT_BITS)) & ~(uint64_t)(WAYS - 1)], *oldest = first;

	for (uint32_t i = 0; i < WAYS; i++) {
		if ((first[i].hash & ~(uint64_t)NUMBERED) == h)
			return &first[i];
		if (!first[i].hash || first[i].time_ns < oldest->time_ns)
			oldest = &first[i];
		if (!oldest->hash)
			break;
	}
	return oldest;
}

/* The same packet again, `age` after its first. */
static bool again(struct nwa *a, const struct packet *p, struct recent *slot, int64_t age)
{
	struct times_captured *way = of_way(a, &p->from, &p->to);
	bool numbered = slot->hash & NUMBERED, routed = slot->hop_limit != p->hop_limit;
	int64_t within = numbered || routed	 ? COPY_NUMBERED_NS
			 : way->several >= KNOWN ? COPY_KNOWN_NS
						 : COPY_UNNUMBERED_NS;

	if (age >= within || age <= -COPY_NUMBERED_NS)
		return false;
	if (!numbered && !routed && may_be_equal(p) && slot->times % usual(a, p) == 0)
		return false;
	if (slot->times < UINT8_MAX)
		slot->times++;
	if (!may_be_equal(p) || numbered) {
		if (slot->times == 2 && way->several < UINT8_MAX)
			way->several++;
		if (slot->times > way->most)
			way->most = slot->times;
		if (slot->times > a->any_way.most)
			a->any_way.most = slot->times;
	}
	return true;
}

bool is_copy(struct nwa *a, const struct packet *p)
{
	uint16_t number = (uint16_t)(p->ip_id >> 16);
	struct times_captured *way;
	struct recent *slot;
	bool numbered;
	uint64_t h;

	if (p->captured < (p->protocol == PROTOCOL_TCP ? TCP_HEADER : CHECKSUM_END + 1))
		return false;
	if (p->captured < p->length && p->captured < CHECKSUM_END + 8)
		return false; /* the snaplen cut off what tells packets apart */
	h = (hash_of(p) | TAKEN) & ~(uint64_t)NUMBERED;
	slot = slot_of(a, h);
	if ((slot->hash & ~(uint64_t)NUMBERED) == h && /* times may be at both ends of 64 bits */
	    again(a, p, slot, (int64_t)((uint64_t)p->time_ns - (uint64_t)slot->time_ns)))
		return true;
	/* a host that gives all of its packets one number does not number them */
	numbered = number && number != a->last_number;
	a->last_number = number;
	*slot = (struct recent){.hash = h | (numbered ? NUMBERED : 0),
				.time_ns = p->time_ns,
				.hop_limit = p->hop_limit,
				.times = 1};
	if (!may_be_equal(p)) {
		way = of_way(a, &p->from, &p->to);
		way->packets = a->any_way.packets = true;
		if (!way->most)
			way->most = 1;
		if (!a->any_way.most)
			a->any_way.most = 1;
	}
	return false;
}
