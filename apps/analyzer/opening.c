// SPDX-License-Identifier: Apache-2.0
/* Documented in opening.h. */
#include <stdlib.h>

#include "flow.h"
#include "opening.h"

enum { SYN = 2, RST = 4, ACK = 16 };
/* An opening is over by then: what is further away is of another connection, unless it goes on so. */
static const uint32_t OPENING_BYTES = 1u << 22;
static const uint32_t RESET_BYTES = 1u << 24;
enum { MOST_STRAYS = 16 };

static struct nwa_flow *row_of(const struct nwa *a, const struct flow *f)
{
	return table_row(&a->tables[nwa_table_flows], f->id);
}

static void mark_stray(struct nwa *a, uint64_t segment)
{
	struct table *t = &a->tables[nwa_table_segments];

	if (segment >= a->first_segment && segment - a->first_segment < t->count)
		((struct nwa_segment *)table_row(t, segment - a->first_segment))->stray = true;
}

/* Of all SYNs beyond OFFERS the last takes the last place. */
static void add_offer(struct nwa *a, struct flow *f, const struct offer *o)
{
	struct opening *all = f->opening;

	if (!all) {
		all = f->opening = calloc(1, sizeof(*all));
		if (!all) {
			a->out_of_memory = true;
			return;
		}
		for (int d = 0; d < 2; d++)
			if (f->half[d].numbered)
				all->list[all->count++] = f->half[d].syn;
	}
	all->list[all->count < OFFERS ? all->count++ : OFFERS - 1] = *o;
}

/* The offers in force: the window scale only where both ends offered it (RFC 7323 2.2). */
static void take_options(struct nwa *a, const struct flow *f, const struct offer *const by[2])
{
	struct nwa_flow *row = row_of(a, f);
	uint8_t shift[2];

	for (int d = 0; d < 2; d++) {
		if (!by[d])
			continue;
		row->mss[d] = by[d]->mss;
		shift[d] = by[d]->present & NWA_OPTION_WINDOW_SCALE ? by[d]->shift : NO_SHIFT;
	}
	if (!by[0] || !by[1])
		return;
	for (int d = 0; d < 2; d++)
		row->window_shift[d] = shift[0] != NO_SHIFT && shift[1] != NO_SHIFT ? shift[d] : 0;
}

/*
 * Of the SYNs of one end with number `seq` before `until` the one with the timestamp `echo`, else the last.
 * *unclear: others of them differ in what counts, and nothing shows which one was meant.
 */
static const struct offer *chosen(const struct opening *all, int direction, uint32_t seq, uint64_t until,
				  const uint32_t *echo, bool scaled, bool *unclear)
{
	const struct offer *best = NULL;

	*unclear = false;
	for (uint32_t i = 0; i < all->count; i++) {
		const struct offer *o = &all->list[i];

		if (o->direction != direction || o->seq != seq || (o->segment >= until && best))
			continue;
		if (echo && o->present & NWA_OPTION_TIMESTAMP && o->ts_val == *echo) {
			*unclear = false;
			return o;
		}
		if (scaled && !(o->present & NWA_OPTION_WINDOW_SCALE))
			continue; /* the answer to this one offers no scale */
		*unclear |= best && (best->present != o->present || best->shift != o->shift);
		best = o;
	}
	return best;
}

/* The connection is made of these first numbers. `by`: the segment that shows it. */
static void settle(struct nwa *a, struct flow *f, const struct words *w)
{
	struct opening *all = f->opening;
	struct nwa_flow *row = row_of(a, f);
	const struct offer *by[2];
	bool unclear[2], simultaneous = f->half[0].asked && f->half[1].asked;

	f->established = true;
	if (!all)
		return;
	/* direction 1 answers, so that its timestamp tells which SYN it answers */
	by[1] = chosen(all, 1, f->half[1].base, UINT64_MAX, !w->direction && w->stamped ? &w->ts_ecr : NULL,
		       false, &unclear[1]);
	by[0] = chosen(all, 0, f->half[0].base, by[1] ? by[1]->segment : UINT64_MAX,
		       by[1] && by[1]->present & NWA_OPTION_TIMESTAMP ? &by[1]->ts_ecr : NULL,
		       by[1] && by[1]->present & NWA_OPTION_WINDOW_SCALE, &unclear[0]);
	take_options(a, f, by);
	if ((unclear[0] || unclear[1]) && !simultaneous)
		row->window_shift[0] = row->window_shift[1] = NO_SHIFT;
	for (uint32_t i = 0; i < all->count; i++)
		if (all->list[i].seq != f->half[all->list[i].direction].base)
			mark_stray(a, all->list[i].segment);
	free(all);
	f->opening = NULL;
}

static bool within(uint32_t number, uint32_t base)
{
	return number - base - 1 < OPENING_BYTES;
}

static void set_base(struct nwa *a, struct flow *f, int direction, uint32_t base, bool known)
{
	struct nwa_flow *row = row_of(a, f);
	struct half *h = &f->half[direction];

	h->base = base;
	h->has_base = true;
	h->base_known = known;
	row->base[direction] = base;
	row->base_known[direction] = known;
}

bool opening_syn(struct nwa *a, struct flow *f, const struct offer *o, uint16_t flags)
{
	struct half *h = &f->half[o->direction], *other = &f->half[!o->direction];
	const struct offer *by[2];

	if (f->established && h->has_base && h->base != o->seq)
		return true;
	h->asked |= !(flags & ACK);
	h->answered |= !!(flags & ACK);
	row_of(a, f)->initiator_known = true;
	if (h->numbered) {
		if (!f->established)
			add_offer(a, f, o);
		return false;
	}
	if (f->opening)
		add_offer(a, f, o);
	h->numbered = true;
	h->syn = *o;
	set_base(a, f, o->direction, o->seq, true);
	by[o->direction] = o;
	by[!o->direction] = other->numbered ? &other->syn : NULL;
	take_options(a, f, by);
	return false;
}

/* The SYN+ACK that a segment acknowledges, whose first number is *base: the nearest below. */
static bool acknowledges(const struct flow *f, const struct words *w, uint32_t *base)
{
	const struct half *other = &f->half[!w->direction];
	uint32_t nearest = OPENING_BYTES;

	if (!other->has_base)
		return true;
	if (within(w->ack, other->base)) {
		nearest = w->ack - other->base - 1;
		*base = other->base;
	}
	for (uint32_t i = 0; f->opening && i < f->opening->count; i++) {
		const struct offer *o = &f->opening->list[i];

		if (o->direction != w->direction && w->ack - o->seq - 1 < nearest) {
			nearest = w->ack - o->seq - 1;
			*base = o->seq;
		}
	}
	return nearest < OPENING_BYTES;
}

/* Whether a segment goes on from a SYN of its sender, whose first number is *base. */
static bool goes_on(const struct flow *f, const struct words *w, uint32_t *base)
{
	const struct half *h = &f->half[w->direction];

	if (!h->has_base || within(w->seq, h->base))
		return true;
	for (uint32_t i = 0; f->opening && i < f->opening->count; i++) {
		const struct offer *o = &f->opening->list[i];

		if (o->direction == w->direction && within(w->seq, o->seq)) {
			*base = o->seq;
			return true;
		}
	}
	return false;
}

bool opening_segment(struct nwa *a, struct flow *f, const struct words *w)
{
	struct half *h = &f->half[w->direction], *other = &f->half[!w->direction];
	uint32_t mine = h->base, theirs = other->base;
	bool own = goes_on(f, w, &mine), taken = !(w->flags & ACK) || acknowledges(f, w, &theirs);

	if (w->flags & RST) /* a refusal acknowledges the SYN; a host that gives up goes on from its own */
		return w->flags & ACK ? !taken : !own;
	if (own && !taken && other->answered && !w->direction) {
		taken = true; /* the SYN+ACK that it acknowledges was not captured */
		theirs = w->ack - 1;
	}
	if (!own || !taken || !(w->flags & ACK)) {
		f->established = ++f->strays >= MOST_STRAYS;
		return true;
	}
	if (h->has_base && mine != h->base)
		set_base(a, f, w->direction, mine, true);
	if (other->has_base && theirs != other->base)
		set_base(a, f, !w->direction, theirs, w->ack != theirs + 1 || !other->answered || f->opening);
	settle(a, f, w);
	return false;
}

static uint32_t apart(uint32_t a, uint32_t b)
{
	return a - b < b - a ? a - b : b - a;
}

bool opening_beyond(const struct half *h, uint32_t seq)
{
	return apart(seq, h->base + (uint32_t)h->highest) >= RESET_BYTES &&
	       apart(seq, h->base + (uint32_t)h->highest_ack) >= RESET_BYTES;
}

uint32_t opening_distance(const struct flow *f, const struct words *w)
{
	const struct half *h = &f->half[w->direction], *other = &f->half[!w->direction];
	uint32_t far = UINT32_MAX, ack;

	if (h->has_base)
		far = apart(w->seq, h->base + (uint32_t)h->highest);
	if (w->flags & ACK && other->has_base) {
		ack = apart(w->ack, other->base + (uint32_t)other->highest);
		if (far == UINT32_MAX || ack > far)
			far = ack;
	}
	return far;
}
