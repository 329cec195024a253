// SPDX-License-Identifier: Apache-2.0
/*
 * Decodes SCTP packets. Every chunk is checked against its own length, the packet's and the captured bytes.
 */
#include <string.h>

#include "sctp.h"
#include "association.h"
#include "flow.h"
#include "sctp_chunks.h"

struct chunk {
	const uint8_t *at;
	uint32_t captured; /* of it, header included */
	uint16_t length;
	uint8_t type, flags;
};

struct context {
	struct nwa *a;
	const struct packet *p;
	struct flow *flow;
	struct findings *f;
	uint32_t path;
	uint8_t direction;
};

/* The bytes that name a message: the first four, of Diameter the flags and the command's code (RFC 6733 3) */
static uint32_t begin_of_message(const struct context *c, const struct chunk *k, uint32_t header,
				 uint32_t ppid)
{
	bool its_port = get_be16(c->p->data) == DIAMETER_PORT || get_be16(c->p->data + 2) == DIAMETER_PORT;
	uint32_t at = header + (ppid == PPID_DIAMETER || (!ppid && its_port) ? 4 : 0);

	return (k->flags & FLAG_FIRST) && k->captured >= at + 4 ? get_be32(k->at + at) : NWA_NONE;
}

static void data_chunk(struct context *c, const struct chunk *k, struct nwa_chunk *row)
{
	struct half *h = &c->flow->half[c->direction];
	bool interleaved = k->type == CHUNK_I_DATA;
	uint32_t header = interleaved ? I_DATA_HEADER : DATA_HEADER, raw, first_path = NWA_NONE;

	if (k->length < header) {
		c->f->malformed = true;
		return;
	}
	row->user_bytes = k->length - header;
	c->f->payload_bytes += row->user_bytes;
	c->f->data_chunks++;
	if (k->captured <
	    header) /* its TSN may lie beyond the snaplen: nothing is known of it but its length */
		return;
	raw = get_be32(k->at + 4);
	if (!h->has_base) {
		struct nwa_flow *flow = table_row(&c->a->tables[nwa_table_flows], c->flow->id);

		half_set_base(h, raw, false);
		flow->base[c->direction] = h->base;
	}
	row->tsn = half_unwrap(h, raw);
	row->stream = get_be16(k->at + 8);
	row->message = interleaved ? get_be32(k->at + 12) : get_be16(k->at + 10);
	row->ppid = get_be32(k->at + (interleaved ? 16 : 12));
	row->detail = begin_of_message(c, k, header, row->ppid);
	if (ranges_add(&h->seen, row->tsn, row->tsn + 1, c->path, &first_path)) {
		c->f->new_bytes += row->user_bytes;
	} else {
		row->is_retransmission = true;
		row->on_other_path = first_path != c->path;
		c->f->is_retransmission = true;
		c->f->on_other_path |= row->on_other_path;
		c->f->retransmitted_chunks++;
	}
	if (h->seen.failed)
		c->a->out_of_memory = true;
}

/* A number of the other direction. */
static int64_t acknowledged(struct context *c, uint32_t raw)
{
	struct half *other = &c->flow->half[!c->direction];

	if (!other->has_base) {
		struct nwa_flow *flow = table_row(&c->a->tables[nwa_table_flows], c->flow->id);

		half_set_base(other, raw + 1, false);
		flow->base[!c->direction] = other->base;
	}
	return half_unwrap_ack(other, raw);
}

static void sack_chunk(struct context *c, const struct chunk *k, struct nwa_chunk *row)
{
	struct table *blocks = &c->a->tables[nwa_table_blocks], *sacks = &c->a->tables[nwa_table_sacks];
	uint32_t gaps, duplicates, room, first = (uint32_t)blocks->count;
	const uint8_t *at = k->at + SACK_HEADER;
	struct half *other = &c->flow->half[!c->direction];
	struct nwa_sack *sack;
	bool incomplete = false;

	if (k->length < SACK_HEADER) {
		c->f->malformed = true;
		return;
	}
	c->f->acks = true;
	c->f->sacks++;
	if (k->captured < SACK_HEADER)
		return;
	row->tsn = acknowledged(c, get_be32(k->at + 4));
	gaps = get_be16(k->at + 12);
	duplicates = get_be16(k->at + 14);
	if (gaps * 4 + duplicates * 4 > k->length - (uint32_t)SACK_HEADER) {
		c->f->malformed = true;
		incomplete = true;
	}
	room = (k->captured - SACK_HEADER) / 4;
	if (gaps > room) {
		gaps = room;
		incomplete = true;
	}
	if (duplicates > room - gaps) {
		duplicates = room - gaps;
		incomplete = true;
	}
	for (uint32_t i = 0; i < gaps; i++, at += 4) {
		struct nwa_block *block = table_push(blocks);

		*block = (struct nwa_block){.start = row->tsn + get_be16(at),
					    .end = row->tsn + get_be16(at + 2) + 1,
					    .packet = c->p->number,
					    .kind = 0};
	}
	for (uint32_t i = 0; i < duplicates; i++, at += 4) {
		struct nwa_block *block = table_push(blocks);
		int64_t tsn = other->highest_ack +
			      (int32_t)(get_be32(at) - (other->base + (uint32_t)other->highest_ack));

		*block = (struct nwa_block){.start = tsn, .end = tsn + 1, .packet = c->p->number, .kind = 1};
	}
	row->detail = (uint32_t)sacks->count;
	sack = table_push(sacks);
	*sack = (struct nwa_sack){.time_ns = c->p->time_ns,
				  .cumulative_tsn = row->tsn,
				  .a_rwnd_bytes = get_be32(k->at + 8),
				  .flow = c->flow->id,
				  .path = c->path,
				  .packet = c->p->number,
				  .first_block = first,
				  .gap_blocks = (uint16_t)gaps,
				  .duplicate_tsns = (uint16_t)duplicates,
				  .direction = c->direction,
				  .incomplete = incomplete};
}

static uint16_t init_addresses(struct context *c, const struct chunk *k, uint32_t init)
{
	uint32_t whole = k->captured < k->length ? k->captured : k->length, offset = INIT_HEADER;
	uint16_t found = 0;

	while (offset + 4 <= whole) {
		const uint8_t *at = k->at + offset;
		uint16_t type = get_be16(at), length = get_be16(at + 2);
		bool v4 = type == PARAMETER_IPV4 && length == 8, v6 = type == PARAMETER_IPV6 && length == 20;

		if (length < 4 || offset + length > k->length) {
			c->f->malformed = true;
			break;
		}
		if (offset + length > whole)
			break;
		if (v4 || v6) {
			struct address address = v4 ? address_v4(at + 4) : address_v6(at + 4);
			struct nwa_address *row = table_push(&c->a->tables[nwa_table_addresses]);

			*row = (struct nwa_address){.init = init, .family = v4 ? 4 : 6};
			address_store(row->address, &address);
			found++;
		}
		offset += (length + 3u) & ~3u;
	}
	return found;
}

static void init_chunk(struct context *c, const struct chunk *k, struct nwa_chunk *row)
{
	struct table *inits = &c->a->tables[nwa_table_inits];
	struct nwa_init *init;

	if (k->length < INIT_HEADER) {
		c->f->malformed = true;
		return;
	}
	if (k->captured < INIT_HEADER)
		return;
	row->tsn = 0;
	row->detail = (uint32_t)inits->count;
	init = table_push(inits);
	*init = (struct nwa_init){.time_ns = c->p->time_ns,
				  .flow = c->flow->id,
				  .path = c->path,
				  .packet = c->p->number,
				  .tag = get_be32(k->at + 4),
				  .a_rwnd_bytes = get_be32(k->at + 8),
				  .streams_out = get_be16(k->at + 12),
				  .streams_in = get_be16(k->at + 14),
				  .initial_tsn = get_be32(k->at + 16),
				  .first_address = (uint32_t)c->a->tables[nwa_table_addresses].count,
				  .direction = c->direction,
				  .is_ack = k->type == CHUNK_INIT_ACK};
	init->addresses = init_addresses(c, k, row->detail);
}

/* HEARTBEAT ACK repeats its HEARTBEAT's information (RFC 9260 8.3): FNV-1a of it identifies the pair. */
static uint32_t heartbeat_hash(const struct chunk *k)
{
	uint32_t hash = 2166136261u;

	for (uint32_t i = CHUNK_HEADER; i < k->captured; i++)
		hash = (hash ^ k->at[i]) * 16777619u;
	return hash;
}

static void causes(struct context *c, const struct chunk *k)
{
	struct table *chunks = &c->a->tables[nwa_table_chunks];
	uint32_t offset = CHUNK_HEADER;

	while (offset + CAUSE_HEADER <= k->captured) {
		const uint8_t *at = k->at + offset;
		uint16_t length = get_be16(at + 2);
		struct nwa_cause *row;

		if (length < CAUSE_HEADER || offset + length > k->length) {
			c->f->malformed = true;
			return;
		}
		row = table_push(&c->a->tables[nwa_table_causes]);
		*row = (struct nwa_cause){.time_ns = c->p->time_ns,
					  .flow = c->flow->id,
					  .path = c->path,
					  .packet = c->p->number,
					  .chunk = chunks->wanted ? (uint32_t)chunks->count - 1 : NWA_NONE,
					  .code = get_be16(at),
					  .length = length,
					  .type = k->type,
					  .direction = c->direction};
		offset += (length + 3u) & ~3u;
	}
}

static void end_flow(struct context *c)
{
	struct nwa_flow *row = table_row(&c->a->tables[nwa_table_flows], c->flow->id);

	row->ended[c->direction] = true;
	c->flow->half[c->direction].ended = true;
}

static void interpret(struct context *c, const struct chunk *k, struct nwa_chunk *row)
{
	switch (k->type) {
	case CHUNK_DATA:
	case CHUNK_I_DATA:
		data_chunk(c, k, row);
		break;
	case CHUNK_SACK:
		sack_chunk(c, k, row);
		break;
	case CHUNK_INIT:
	case CHUNK_INIT_ACK:
		init_chunk(c, k, row);
		break;
	case CHUNK_HEARTBEAT:
		row->message = heartbeat_hash(k);
		c->f->heartbeats++;
		break;
	case CHUNK_HEARTBEAT_ACK:
		row->message = heartbeat_hash(k);
		c->f->heartbeat_acks++;
		break;
	case CHUNK_ERROR:
		causes(c, k);
		break;
	case CHUNK_SHUTDOWN:
		if (k->captured >= 8)
			row->tsn = acknowledged(c, get_be32(k->at + 4));
		end_flow(c);
		break;
	case CHUNK_ABORT:
		causes(c, k);
		end_flow(c);
		break;
	case CHUNK_SHUTDOWN_COMPLETE:
		end_flow(c);
		break;
	case CHUNK_FORWARD_TSN:
	case CHUNK_I_FORWARD_TSN:
		if (k->captured >= 8 && c->flow->half[c->direction].has_base)
			row->tsn = half_unwrap(&c->flow->half[c->direction], get_be32(k->at + 4));
		break;
	default:
		break;
	}
}

/* The next chunk at `offset`; false: there is none, or none that can be used. */
static bool next_chunk(const struct packet *p, uint32_t offset, struct chunk *k, bool *malformed)
{
	uint32_t there;

	if (offset >= p->length)
		return false;
	if (p->length - offset < CHUNK_HEADER) {
		*malformed = true;
		return false;
	}
	if (offset > p->captured || p->captured - offset < CHUNK_HEADER)
		return false; /* beyond the snaplen */
	k->at = p->data + offset;
	k->type = k->at[0];
	k->flags = k->at[1];
	k->length = get_be16(k->at + 2);
	if (k->length < CHUNK_HEADER || k->length > p->length - offset) {
		*malformed = true;
		return false;
	}
	there = p->captured - offset;
	k->captured = there < k->length ? there : k->length;
	return true;
}

static struct flow *find(struct nwa *a, const struct packet *p, uint32_t path, uint8_t path_direction,
			 const struct chunk *first, uint8_t *direction)
{
	struct association_hint hint = {.from = get_be16(p->data),
					.to = get_be16(p->data + 2),
					.tag = get_be32(p->data + 4),
					.first_type = first->type,
					.first_flags = first->flags};

	if ((first->type == CHUNK_INIT || first->type == CHUNK_INIT_ACK) && first->captured >= INIT_HEADER) {
		hint.has_init_tag = true;
		hint.init_tag = get_be32(first->at + 4);
		hint.initial_tsn = get_be32(first->at + 16);
	}
	if ((first->type == CHUNK_DATA || first->type == CHUNK_I_DATA || first->type == CHUNK_SACK) &&
	    first->captured >= 8) {
		hint.has_tsn = true;
		hint.tsn = get_be32(first->at + 4);
	}
	return association_of(a, p, path, path_direction, &hint, direction);
}

void sctp_packet(struct nwa *a, const struct packet *p, uint32_t path, uint8_t path_direction,
		 struct findings *f)
{
	struct context c = {.a = a, .p = p, .f = f, .path = path};
	struct table *chunks = &a->tables[nwa_table_chunks];
	uint32_t offset = SCTP_HEADER;
	struct chunk k = {0};

	if (p->captured < SCTP_HEADER) {
		f->malformed = p->length < SCTP_HEADER;
		return;
	}
	if (!next_chunk(p, offset, &k, &f->malformed)) /* a packet without chunks belongs to no flow */
		return;
	c.flow = find(a, p, path, path_direction, &k, &c.direction);
	if (!c.flow)
		return;
	f->flow = c.flow->id;
	f->direction = c.direction;
	do {
		struct nwa_chunk *row = table_push(chunks);

		*row = (struct nwa_chunk){.time_ns = p->time_ns,
					  .tsn = NWA_UNKNOWN,
					  .flow = c.flow->id,
					  .path = path,
					  .packet = p->number,
					  .detail = NWA_NONE,
					  .length = k.length,
					  .type = k.type,
					  .flags = k.flags,
					  .direction = c.direction,
					  .truncated = k.captured < k.length};
		f->chunks++;
		if (k.type != CHUNK_INIT && k.type != CHUNK_ABORT)
			((struct nwa_flow *)table_row(&a->tables[nwa_table_flows], c.flow->id))
			    ->heard[!c.direction] = true;
		interpret(&c, &k, row);
		offset += (k.length + 3u) & ~3u;
	} while (next_chunk(p, offset, &k, &f->malformed));
	/* up to 3 bytes at the end of a whole packet are no chunk */
	if (p->captured < p->length && offset < p->length &&
	    (offset > p->captured || p->captured - offset < CHUNK_HEADER))
		f->unseen_bytes = p->length - offset;
}
