// SPDX-License-Identifier: Apache-2.0
/*
 * Assigns packets to associations by ports and verification tag, whatever the addresses (RFC 9260 8.5): a
 * packet carries its receiver's tag; an INIT carries 0 in the header and its sender's tag in the chunk. If
 * a tag is not known (the handshake is outside the capture) the address pair and ports are used.
 */
#include <stdlib.h>

#include "association.h"
#include "flow.h"
#include "sctp_chunks.h"

static uint64_t tag_key(uint16_t from, uint16_t to, uint32_t tag)
{
	return (uint64_t)from << 48 | (uint64_t)to << 32 | tag;
}

/* From now on packets with these ports and tag are this flow's, in this direction. */
static void learn_tag(struct nwa *a, struct flow *f, uint8_t direction, uint32_t tag)
{
	struct nwa_flow *row = table_row(&a->tables[nwa_table_flows], f->id);
	struct half *receiver = &f->half[!direction];

	receiver->tag = tag;
	receiver->tag_known = true;
	row->tag[!direction] = tag;
	row->tag_known[!direction] = true;
	if (f->id > UINT32_MAX >> 1 ||
	    !map_put(&a->tags, tag_key(f->port[direction], f->port[!direction], tag), f->id << 1 | direction))
		a->out_of_memory = true;
}

bool association_join(struct nwa *a, const struct tag_pair *pair)
{
	struct tag_pair *all = realloc(a->pairs, (a->pair_count + 1) * sizeof(*all));

	if (!all)
		return false;
	a->pairs = all;
	all[a->pair_count] = *pair;
	for (uint32_t end = 0; end < 2; end++)
		if (!map_put(&a->peers, tag_key(pair->port[!end], pair->port[end], pair->tag[end]),
			     a->pair_count << 1 | end))
			return false;
	a->pair_count++;
	return true;
}

/* The other end's tag, where nwa_join() told it. */
static void learn_peer(struct nwa *a, struct flow *f, uint8_t direction)
{
	const struct half *receiver = &f->half[!direction];
	uint64_t key = tag_key(f->port[direction], f->port[!direction], receiver->tag);
	uint32_t value;

	if (!f->half[direction].tag_known && map_get(&a->peers, key, &value))
		learn_tag(a, f, !direction, a->pairs[value >> 1].tag[!(value & 1)]);
}

/* The ports on this path now belong to this flow: for packets of unknown tag, and to recognise a restart. */
static void learn_path(struct nwa *a, struct flow *f, uint32_t path, uint8_t path_direction,
		       uint8_t direction)
{
	uint64_t key = flow_key(path, path_direction, f->port[direction], f->port[!direction]);

	if (!map_put(&a->sctp, key, f->id << 1 | (uint32_t)(path_direction ^ direction)))
		a->out_of_memory = true;
}

static bool has_tag(const struct half *h, uint32_t tag)
{
	return h->tag_known && h->tag == tag;
}

static struct flow *by_tag(struct nwa *a, uint16_t from, uint16_t to, uint32_t tag, uint8_t *direction)
{
	uint32_t value;

	if (!map_get(&a->tags, tag_key(from, to, tag), &value))
		return NULL;
	*direction = value & 1;
	return flow_at(a, value >> 1);
}

/* TSNs further apart than any window lets them be. */
static const int64_t TSN_DISTANCE = 1 << 20;

/*
 * Whether a packet with an association's ports and tag, on a path that it has not used before, is of it. Tags
 * are drawn at random as a rule, but some hosts count them: then several associations have the same ports and
 * tag. TSNs of one go on where they were.
 */
static bool may_use_path(const struct flow *f, uint8_t direction, const struct association_hint *hint)
{
	const struct half *h = &f->half[hint->first_type == CHUNK_SACK ? !direction : direction];
	int64_t distance;

	if (!hint->has_tsn || !h->has_base)
		return true;
	distance = (int32_t)(hint->tsn - (h->base + (uint32_t)h->highest));
	return distance < TSN_DISTANCE && distance > -TSN_DISTANCE;
}

static struct flow *by_path(struct nwa *a, uint32_t path, uint8_t path_direction,
			    const struct association_hint *hint, uint8_t *direction)
{
	uint32_t value;

	if (!map_get(&a->sctp, flow_key(path, path_direction, hint->from, hint->to), &value))
		return NULL;
	*direction = (uint8_t)(path_direction ^ (value & 1));
	return flow_at(a, value >> 1);
}

/*
 * Takes an INIT's or INIT-ACK's numbers: the sender's tag is what the other side's packets carry from now
 * on.
 */
static void take_init(struct nwa *a, struct flow *f, uint8_t direction, const struct association_hint *hint)
{
	struct nwa_flow *row = table_row(&a->tables[nwa_table_flows], f->id);
	struct half *h = &f->half[direction];

	if (!h->has_base || !h->base_known || (!h->highest && !h->highest_ack)) {
		/* a repeated INIT-ACK may have another initial TSN: the last one before data counts */
		h->base_known = false;
		half_set_base(h, hint->initial_tsn, true);
	}
	h->numbered = true;
	row->base[direction] = h->base;
	row->base_known[direction] = h->base_known;
	row->initiator_known = f->initiator_known = true;
	learn_tag(a, f, !direction, hint->init_tag);
}

static void add_offer(struct offers *o, uint32_t tag, uint32_t tsn)
{
	o->list[o->count % OFFERS].tag = tag;
	o->list[o->count++ % OFFERS].tsn = tsn;
}

/* An INIT-ACK's numbers: until it is known which one the initiator takes, the last one stands. */
static void take_answer(struct nwa *a, struct flow *f, uint8_t direction, const struct association_hint *hint)
{
	const struct half *h = &f->half[direction];

	if (h->numbered && !has_tag(h, hint->init_tag)) {
		if (!f->offers) {
			f->offers = calloc(1, sizeof(*f->offers));
			if (!f->offers) {
				a->out_of_memory = true;
				return;
			}
			add_offer(f->offers, h->tag, h->base);
		}
		add_offer(f->offers, hint->init_tag, hint->initial_tsn);
	}
	take_init(a, f, direction, hint);
}

/*
 * The initiator's first packet after the INIT-ACKs, its COOKIE ECHO, carries the tag of the one that it took
 * (RFC 9260 5.1). Where an INIT was repeated or duplicated that need not be the last one.
 */
static void settle_answer(struct nwa *a, struct flow *f, uint8_t direction, uint32_t tag)
{
	for (uint32_t i = 0; i < OFFERS && i < f->offers->count; i++) {
		struct association_hint taken = {.init_tag = f->offers->list[i].tag,
						 .initial_tsn = f->offers->list[i].tsn};

		if (taken.init_tag == tag && !has_tag(&f->half[!direction], tag)) {
			take_init(a, f, !direction, &taken);
			return;
		}
	}
}

/*
 * Whether the cookie was too old: the initiator asks again with its own numbers, and is answered with others
 * (RFC 9260 5.2.6).
 */
static bool refused(const struct flow *f, const struct association_hint *hint)
{
	const struct half *h = f->half;

	return hint->first_type == CHUNK_ERROR && f->initiator_known && !h[0].highest && !h[0].highest_ack &&
	       !h[1].highest && !h[1].highest_ack;
}

static struct flow *make(struct nwa *a, const struct packet *p, uint32_t path, uint8_t path_direction,
			 const struct association_hint *hint, uint8_t direction)
{
	struct heading to = {path, path_direction, hint->from, hint->to};
	struct flow *f = flow_new(a, p, &to, direction);

	if (f)
		learn_path(a, f, path, path_direction, direction);
	return f;
}

static struct flow *of_init(struct nwa *a, const struct packet *p, uint32_t path, uint8_t path_direction,
			    const struct association_hint *hint, uint8_t *direction)
{
	struct flow *f = by_tag(a, hint->to, hint->from, hint->init_tag, direction), *before;
	struct nwa_flow *row;
	uint8_t there = 0;

	before = by_path(a, path, path_direction, hint, &there);
	if (before && has_tag(&before->half[there], hint->init_tag)) {
		f = before; /* of several associations with this tag the one of this path */
		*direction = !there;
	} else if (f && f->last_path != path && f->half[*direction ^ 1].base != hint->initial_tsn) {
		f = NULL;
	}

	if (f) {
		const struct half *h = &f->half[*direction ^ 1];

		/* the same INIT again; its tag in an association that is over is only the same number */
		if (!f->half[0].ended && !f->half[1].ended &&
		    (!h->numbered || h->base == hint->initial_tsn)) {
			*direction ^= 1;
			return f;
		}
	}
	before = by_path(a, path, path_direction, hint, direction);
	if (before && !before->talked && !before->half[*direction].numbered &&
	    before->half[!*direction].numbered) {
		take_init(a, before, *direction, hint); /* both sides sent INIT (RFC 9260 5.2.1) */
		return before;
	}
	f = make(a, p, path, path_direction, hint, 0);
	if (!f)
		return NULL;
	*direction = 0;
	take_init(a, f, 0, hint);
	if (before && before->talked && !before->half[0].ended && !before->half[1].ended) {
		row = table_row(&a->tables[nwa_table_flows], f->id);
		row->restart_of = before->id;
	}
	return f;
}

struct flow *association_of(struct nwa *a, const struct packet *p, uint32_t path, uint8_t path_direction,
			    const struct association_hint *hint, uint8_t *direction)
{
	bool reflected = hint->first_flags & FLAG_T &&
			 (hint->first_type == CHUNK_ABORT || hint->first_type == CHUNK_SHUTDOWN_COMPLETE);
	bool answer = hint->first_type == CHUNK_INIT_ACK;
	struct flow *f;

	if (hint->first_type == CHUNK_INIT && hint->has_init_tag)
		return of_init(a, p, path, path_direction, hint, direction);
	f = by_path(a, path, path_direction, hint, direction);
	if (f && !has_tag(&f->half[!*direction], hint->tag) &&
	    !(reflected && has_tag(&f->half[*direction], hint->tag)))
		f = NULL; /* another association of the same ports, or one whose tag is not known yet */
	if (!f) {
		f = by_tag(a, hint->from, hint->to, hint->tag, direction);
		if (f && f->last_path != path && !may_use_path(f, *direction, hint))
			f = NULL;
	}
	if (!f && reflected) {
		f = by_tag(a, hint->to, hint->from, hint->tag, direction);
		*direction ^= 1;
	}
	if (!f) {
		f = by_path(a, path, path_direction, hint, direction);
		if (f && f->half[!*direction].tag_known)
			f = NULL; /* another association of the same ports */
		if (!f) {
			*direction = answer;
			f = make(a, p, path, path_direction, hint, *direction);
			if (!f)
				return NULL;
		}
		if (hint->tag) {
			learn_tag(a, f, *direction, hint->tag);
			learn_peer(a, f, *direction);
		}
	}
	if (answer && hint->has_init_tag && !f->talked)
		take_answer(a, f, *direction, hint);
	if (refused(f, hint)) {
		f->talked = false;
	} else if (hint->first_type != CHUNK_INIT && !answer) {
		if (!f->talked && f->offers)
			settle_answer(a, f, *direction, hint->tag);
		f->talked = true;
	}
	if (f->last_path != path)
		learn_path(a, f, path, path_direction, *direction);
	return f;
}
