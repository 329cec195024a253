// SPDX-License-Identifier: Apache-2.0
/* Reassembly: RFC 791 3.2, RFC 8200 4.5. Overlapping fragments make a datagram void (RFC 5722), equal ones do
 * not. */
#include <stdlib.h>
#include <string.h>

#include "fragment.h"

/* as Linux (net.ipv4.ipfrag_time) */
static const int64_t FRAGMENT_LIFE_NS = 30000000000;

static bool same(const struct datagram *d, const struct packet *p)
{
	return d->id == p->fragment_id && d->source == p->source && d->kind == p->kind &&
	       (p->kind == PACKET_IPV6 || d->protocol == p->protocol) && address_equal(&d->from, &p->from) &&
	       address_equal(&d->to, &p->to);
}

/* The fragment's datagram, a free slot, or the oldest one's. */
static struct datagram *slot_of(struct fragments *s, const struct packet *p)
{
	struct datagram *oldest = s->slots;

	for (uint32_t i = 0; i < FRAGMENT_SLOTS; i++) {
		struct datagram *d = &s->slots[i];

		if (d->age && same(d, p)) {
			if ((int64_t)((uint64_t)p->time_ns - (uint64_t)d->first_ns) <= FRAGMENT_LIFE_NS)
				return d;
			oldest = d; /* its number is in use again */
			break;
		}
		if (d->age < oldest->age)
			oldest = d;
	}
	oldest->age = 0;
	return oldest;
}

static bool begin(struct fragments *s, struct datagram *d, const struct packet *p)
{
	uint8_t *bytes = d->bytes ? d->bytes : malloc(DATAGRAM_MAX + 1);

	if (!bytes)
		return false;
	d->bytes = bytes;
	d->from = p->from;
	d->to = p->to;
	d->first_ns = p->time_ns;
	d->age = ++s->ages;
	d->id = p->fragment_id;
	d->count = d->there = d->total = 0;
	d->ip_bytes = d->frame_bytes = 0;
	d->source = p->source;
	d->kind = p->kind;
	d->protocol = p->protocol;
	d->next = p->protocol;
	return true;
}

static int by_offset(const void *one, const void *other)
{
	const struct piece *a = one, *b = other;

	return a->offset < b->offset ? -1 : a->offset > b->offset;
}

const struct datagram *fragments_add(struct fragments *s, struct packet *p, bool *failed)
{
	uint32_t end = p->fragment_offset + p->length, captured = 0;
	struct datagram *d;

	/* the sum may wrap: without an IP length (TSO) it is the frame's, any 32 bits */
	if (p->length > DATAGRAM_MAX || end > DATAGRAM_MAX || (p->fragment_more && p->length % 8)) {
		p->marks |= NWA_MARK_MALFORMED;
		return NULL;
	}
	if (!s->slots)
		s->slots = calloc(FRAGMENT_SLOTS, sizeof(*s->slots));
	if (!s->slots) {
		*failed = true;
		return NULL;
	}
	d = slot_of(s, p);
	if (!d->age && !begin(s, d, p)) {
		*failed = true;
		return NULL;
	}
	for (uint32_t i = 0; i < d->count; i++) {
		const struct piece *piece = &d->pieces[i];

		if (piece->offset == p->fragment_offset && piece->length == p->length)
			return NULL; /* the same again */
		if (p->fragment_offset < piece->offset + piece->length && piece->offset < end)
			goto give_up;
		if (!p->fragment_more && piece->offset > p->fragment_offset)
			goto give_up; /* one lies beyond the end */
	}
	if (d->count == FRAGMENT_PIECES || (d->total && end > d->total) ||
	    (!p->fragment_more && d->total && end != d->total))
		goto give_up;
	if (!p->fragment_more)
		d->total = end;
	if (!p->fragment_offset)
		d->next = p->protocol;
	d->pieces[d->count++] = (struct piece){.offset = p->fragment_offset,
					       .length = p->length,
					       .captured = p->captured < p->length ? p->captured : p->length,
					       .number = p->number};
	memcpy(d->bytes + p->fragment_offset, p->data, d->pieces[d->count - 1].captured);
	d->there += p->length;
	d->ip_bytes += p->ip_bytes;
	d->frame_bytes += p->frame_bytes;
	if (!d->total || d->there < d->total) /* they are disjoint, and none is beyond the end */
		return NULL;
	d->age = 0;
	qsort(d->pieces, d->count, sizeof(d->pieces[0]), by_offset);
	for (uint32_t i = 0; i < d->count; i++) {
		captured += d->pieces[i].captured;
		if (d->pieces[i].captured < d->pieces[i].length)
			break;
	}
	p->data = d->bytes;
	p->captured = captured;
	p->length = d->total;
	p->protocol = d->next;
	return d;
give_up:
	p->marks |= NWA_MARK_MALFORMED;
	d->age = 0;
	return NULL;
}

void fragments_free(struct fragments *s)
{
	for (uint32_t i = 0; s->slots && i < FRAGMENT_SLOTS; i++)
		free(s->slots[i].bytes);
	free(s->slots);
	s->slots = NULL;
}
