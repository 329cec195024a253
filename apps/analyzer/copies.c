/* What these functions do and promise: copies.h. */
#include "copies.h"

/*
 * A sender gives each IPv4 packet another number (RFC 6864 4: each that may be cut), also where it sends the
 * same again: equal numbers mean the same packet. Without a number, as in IPv6, only the time tells: nobody
 * asks for bytes again within COPY_UNNUMBERED_NS. Then every second one is a copy, as equal acknowledgements
 * may be sent in a row.
 */
static const int64_t COPY_NUMBERED_NS = 100000000, COPY_UNNUMBERED_NS = 1000000;
enum { COMPARED_BYTES = 32, WORDS = COMPARED_BYTES / 8 };

/* All that a router leaves alone, of as many bytes as any capture has; and not the checksum, which the
 * sender's network card may have filled in between the two. */
static uint64_t hash_of(const struct packet *p)
{
	uint64_t word[WORDS] = {0}, h;

	__builtin_memcpy(word, p->data, p->captured < COMPARED_BYTES ? p->captured : COMPARED_BYTES);
	if (p->protocol == PROTOCOL_TCP)
		__builtin_memset((uint8_t *)word + 16, 0, 2);
	else
		__builtin_memset((uint8_t *)word + 8, 0, 4);
	h = p->from.low ^ (p->to.low << 16 | p->to.low >> 48) ^ ((uint64_t)p->ip_id << 32 | p->ip_bytes);
	for (uint32_t i = 0; i < WORDS; i++)
		h = (h ^ word[i]) * 0x9e3779b97f4a7c15u ^ h >> 29;
	return map_mix(h ^ p->from.high ^ p->to.high);
}

bool is_copy(struct nwa *a, const struct packet *p)
{
	bool numbered = p->ip_id >> 16;
	struct recent *slot;
	int64_t age;
	uint64_t h;

	if (p->protocol != PROTOCOL_TCP && p->protocol != PROTOCOL_SCTP)
		return false;
	h = hash_of(p) | 1; /* 0: a free slot */
	slot = &a->recent[h >> 1 & (RECENT_PACKETS - 1)];
	age = p->time_ns - slot->time_ns;
	if (slot->hash == h && age <= (numbered ? COPY_NUMBERED_NS : COPY_UNNUMBERED_NS) &&
	    age >= -COPY_NUMBERED_NS) {
		if (!numbered)
			slot->hash = 0;
		return true;
	}
	*slot = (struct recent){.hash = h, .time_ns = p->time_ns};
	return false;
}
