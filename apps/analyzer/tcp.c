// SPDX-License-Identifier: Apache-2.0
/* TCP segments: RFC 9293; options RFC 7323 (window scale, timestamps), RFC 2018 (SACK), RFC 8684 (MPTCP). */
#include "tcp.h"
#include "flow.h"
#include "mappings.h"
#include "mptcp.h"
#include "opening.h"
#include "sha256.h"

enum { FIN = 1, SYN = 2, RST = 4, PSH = 8, ACK = 16 };
enum { TCP_HEADER = 20, SHIFT_MAX = 14 };
enum {
	OPTION_END,
	OPTION_NOP,
	OPTION_MSS,
	OPTION_SCALE,
	OPTION_SACK_OK,
	OPTION_SACK,
	OPTION_TIME = 8,
	OPTION_MPTCP = 30
};
enum { MP_CAPABLE = 0, MP_JOIN = 1, DSS = 2 };
/* Connections of the same ports that a segment may still be of */
enum { MOST_BEFORE = 4 };
enum { CAPABLE_WITH_DATA = 22 };
enum { DSS_ACK = 1, DSS_ACK_64 = 2, DSS_MAP = 4, DSS_DSN_64 = 8, DSS_FIN = 16 };

struct options {
	const uint8_t *sack; /* its blocks */
	uint32_t ts_val, ts_ecr;
	uint16_t mss;
	uint16_t present;
	uint8_t sack_blocks;
	uint8_t shift;
	uint64_t map_dsn; /* MPTCP: data number of subflow number map_seq, for map_bytes (0: no mapping) */
	uint32_t map_seq;
	uint16_t map_bytes;
	bool map_short; /* only the lower half of map_dsn was sent */
	uint64_t data_ack;
	bool has_data_ack; /* of 64 bit: Linux sends no other */
	bool subflow;	   /* MP_CAPABLE or MP_JOIN */
	bool has_mptcp;	   /* an MPTCP option that is worth a row */
	bool malformed;
};

/* RFC 8684 3.3: [data ack] [data sequence number, subflow sequence number, length [checksum]] */
static void read_dss(struct options *o, const uint8_t *at, uint8_t length)
{
	uint8_t flags = at[3];
	uint32_t offset = 4, dsn_bytes = flags & DSS_DSN_64 ? 8 : 4;

	if (flags & DSS_ACK) {
		uint32_t ack_bytes = flags & DSS_ACK_64 ? 8 : 4;

		o->has_data_ack = ack_bytes == 8 && offset + ack_bytes <= length;
		if (o->has_data_ack)
			o->data_ack = get_be64(at + offset);
		offset += ack_bytes;
	}
	if (!(flags & DSS_MAP) || offset + dsn_bytes + 6 > length)
		return;
	o->map_short = dsn_bytes == 4;
	o->map_dsn = o->map_short ? get_be32(at + offset) : get_be64(at + offset);
	o->map_seq = get_be32(at + offset + dsn_bytes);
	o->map_bytes = get_be16(at + offset + dsn_bytes + 4);
	/* the last number is the DATA_FIN's, which the subflow does not carry */
	if ((flags & DSS_FIN) && o->map_bytes)
		o->map_bytes--;
}

/* RFC 8684 3.1: the initiator's first data are mapped by its key: [flags, both keys, length [checksum]] */
static void read_capable(struct options *o, const uint8_t *at, uint8_t length)
{
	if ((at[2] & 15) == 0 || (length != CAPABLE_WITH_DATA && length != CAPABLE_WITH_DATA + 2))
		return; /* version 0 has no data beside the keys */
	o->map_dsn = sha256_last64(get_be64(at + 4)) + 1;
	o->map_seq = 1;
	o->map_bytes = get_be16(at + 20);
}

static void read_options(struct options *o, const uint8_t *at, uint32_t bytes)
{
	while (bytes) {
		uint8_t kind = at[0], length;

		if (kind == OPTION_END)
			return;
		if (kind == OPTION_NOP) {
			at++;
			bytes--;
			continue;
		}
		if (bytes < 2 || at[1] < 2 || at[1] > bytes) {
			o->malformed = true;
			return;
		}
		length = at[1];
		if (kind == OPTION_MSS && length == 4) {
			o->present |= NWA_OPTION_MSS;
			o->mss = get_be16(at + 2);
		} else if (kind == OPTION_SCALE && length == 3) {
			o->present |= NWA_OPTION_WINDOW_SCALE;
			o->shift = at[2] > SHIFT_MAX ? SHIFT_MAX : at[2];
		} else if (kind == OPTION_SACK_OK && length == 2) {
			o->present |= NWA_OPTION_SACK_PERMITTED;
		} else if (kind == OPTION_SACK && length >= 10 && (length - 2) % 8 == 0) {
			o->present |= NWA_OPTION_SACK;
			o->sack = at + 2;
			o->sack_blocks = (uint8_t)((length - 2) / 8);
		} else if (kind == OPTION_TIME && length == 10) {
			o->present |= NWA_OPTION_TIMESTAMP;
			o->ts_val = get_be32(at + 2);
			o->ts_ecr = get_be32(at + 6);
		} else if (kind == OPTION_MPTCP && length >= 3) {
			o->present |= NWA_OPTION_MPTCP;
			o->has_mptcp |= mptcp_has_row(at, length);
			o->subflow |= at[2] >> 4 == MP_CAPABLE || at[2] >> 4 == MP_JOIN;
			if (at[2] >> 4 == DSS && length >= 4)
				read_dss(o, at, length);
			if (at[2] >> 4 == MP_CAPABLE)
				read_capable(o, at, length);
		}
		at += length;
		bytes -= length;
	}
}

/*
 * Of several connections of the same ports the one whose numbers are nearest to a segment's: a stray SYN ends
 * no connection, and what the one before sends late is not of the next.
 */
static struct flow *nearest(struct flow *newest, const struct words *w, uint32_t path, uint8_t path_direction,
			    uint8_t orientation, const struct nwa *a, uint8_t *direction)
{
	struct words turned = *w;
	uint32_t far = UINT32_MAX;
	struct flow *best = newest;
	uint8_t steps = 0;

	*direction = (uint8_t)(path_direction ^ orientation);
	for (struct flow *f = newest; f && steps < MOST_BEFORE; f = f->before, steps++) {
		const struct nwa_flow *row = table_row(&a->tables[nwa_table_flows], f->id);
		uint32_t distance;

		if (row->path != path)
			continue;
		turned.direction = (uint8_t)(path_direction ^ row->path_direction);
		distance = opening_distance(f, &turned);
		if (distance < far) {
			far = distance;
			best = f;
			*direction = turned.direction;
		}
	}
	return best;
}

/*
 * The connection and the segment's direction in it. A SYN begins a new one where the ports had one with
 * another initial number, or one that is over (tshark has only the first of these two rules). One with the
 * same number is the same attempt when a reset had refused it (RFC 9293 3.10.7.3), or when the answer to it
 * was recorded before it.
 */
static struct flow *connection(struct nwa *a, const struct packet *p, uint32_t path, uint8_t path_direction,
			       const struct words *w, uint8_t *direction)
{
	struct heading to = {path, path_direction, get_be16(p->data), get_be16(p->data + 2)};
	uint64_t key = flow_key(path, path_direction, to.from, to.to);
	uint8_t first =
	    (w->flags & (SYN | ACK)) == (SYN | ACK); /* SYN+ACK as the first one seen: from the responder */
	struct flow *f, *before = NULL;
	uint32_t value;

	if (map_get(&a->tcp, key, &value)) {
		const struct half *h;

		before = f = flow_at(a, value >> 1);
		*direction = (uint8_t)(path_direction ^ (value & 1));
		if (f->before)
			f = nearest(f, w, path, path_direction, value & 1, a, direction);
		h = &f->half[*direction];
		if ((w->flags & (SYN | ACK)) != SYN)
			return f;
		if (!h->has_base || h->base == w->seq)
			if ((!f->half[0].ended && !f->half[1].ended) ||
			    (h->numbered && !f->half[!*direction].numbered && !h->highest))
				return f;
	}
	f = flow_new(a, p, &to, first);
	if (!f)
		return NULL;
	*direction = first;
	f->initiator_known = w->flags & SYN;
	f->established = !(w->flags & SYN);
	f->before = before;
	/* orientation: what to XOR a path direction with to get the flow's */
	if (f->id > UINT32_MAX >> 1 ||
	    !map_put(&a->tcp, key, f->id << 1 | (uint32_t)(path_direction ^ first)))
		a->out_of_memory = true;
	return f;
}

/* Whether a segment is of another connection: it changes nothing of this one. */
static bool is_stray(struct nwa *a, struct flow *f, const struct words *w, const struct options *o)
{
	struct half *h = &f->half[w->direction];

	if (w->flags & SYN) {
		const struct offer syn = {.segment = a->first_segment + a->tables[nwa_table_segments].count,
					  .seq = w->seq,
					  .ts_val = o->ts_val,
					  .ts_ecr = o->ts_ecr,
					  .mss = o->mss,
					  .present = o->present,
					  .shift = o->shift,
					  .direction = w->direction};
		struct nwa_flow *row = table_row(&a->tables[nwa_table_flows], f->id);

		row->mptcp = (nwa_b1)(row->mptcp | o->subflow);
		return opening_syn(a, f, &syn, w->flags);
	}
	if (!f->established)
		return opening_segment(a, f, w);
	return w->flags & RST && h->has_base && opening_beyond(h, w->seq);
}

/* The data sequence number of the byte at `seq`, by any mapping so far: what is sent again may come without
 * one. */
static int64_t data_number(struct nwa *a, struct half *h, struct options *o, int64_t seq)
{
	uint64_t dsn = 0;

	if (o->map_bytes) {
		uint64_t last = h->mappings ? h->mappings->last_dsn : 0;
		struct mapping new = {.dsn = o->map_dsn};

		if (o->map_short) /* nearest to the last one; before any, from 0 on */
			new.dsn = last + (uint64_t)(int64_t)(int32_t)((uint32_t) new.dsn - (uint32_t)last);
		new.seq = seq + (int32_t)(o->map_seq - (uint32_t)seq); /* relative to the ISN, as ours */
		new.end = new.seq + o->map_bytes;
		if (!mappings_add(&h->mappings, &new))
			a->out_of_memory = true;
	}
	if (!mappings_find(h->mappings, seq, &dsn))
		return 0;
	o->present |= NWA_OPTION_MAPPED;
	return (int64_t)dsn;
}

static void take_sack(struct nwa *a, const struct packet *p, struct half *other, const struct options *o)
{
	for (uint32_t i = 0; i < o->sack_blocks; i++) {
		struct nwa_block *row = table_push(&a->tables[nwa_table_blocks]);
		uint32_t left = get_be32(o->sack + (size_t)i * 8),
			 right = get_be32(o->sack + (size_t)i * 8 + 4);
		int64_t start =
		    other->highest_ack + (int32_t)(left - (other->base + (uint32_t)other->highest_ack));

		*row = (struct nwa_block){
		    .start = start, .end = start + (int32_t)(right - left), .packet = p->number, .kind = 2};
	}
}

/*
 * Whether a segment only asks for an answer: a keep-alive (RFC 9293 3.8.4: at most one byte, which has been
 * acknowledged), or a probe of a closed window (3.8.6.1: one byte of new data, or one before).
 */
static bool asks(struct half *h, const struct half *other, int64_t at, uint32_t payload, uint16_t flags)
{
	if (payload != 1 || (flags & (SYN | FIN | RST | ACK)) != ACK)
		return false;
	if (!h->acknowledged) /* the other end's packets are not captured: what an application pushed is data
			       */
		return at == h->next - 1 && at > 0 && !(flags & PSH);
	if (at == h->highest_ack - 1 && h->next <= h->highest_ack)
		return true;
	return other->window_shut && (at == h->highest_ack || at == h->highest_ack - 1);
}

/* The byte of a probe was taken: it is data after all. */
static void take_probe(struct nwa *a, struct flow *flow, uint8_t direction)
{
	struct half *h = &flow->half[direction];
	struct table *segments = &a->tables[nwa_table_segments], *packets = &a->tables[nwa_table_packets];
	uint32_t first_path = NWA_NONE;

	h->probe.there = false;
	if (!ranges_add(&h->seen, h->probe.seq, h->probe.seq + 1, h->probe.path, &first_path))
		return;
	flow_add_new(a, flow, h->probe.path, direction, 1);
	if (h->probe.segment >= a->first_segment && h->probe.segment - a->first_segment < segments->count)
		((struct nwa_segment *)table_row(segments, h->probe.segment - a->first_segment))->new_bytes =
		    1;
	if (h->probe.packet >= a->first_number && h->probe.packet - a->first_number < packets->count)
		((struct nwa_packet *)table_row(packets, h->probe.packet - a->first_number))->new_bytes = 1;
}

void tcp_packet(struct nwa *a, const struct packet *p, uint32_t path, uint8_t path_direction,
		struct findings *f)
{
	struct options o = {0};
	struct flow *flow;
	struct half *h, *other;
	struct nwa_flow *row;
	struct nwa_segment *segment;
	uint32_t seq, header, options, payload, units, fresh = 0, first_path = NWA_NONE,
						       first_block = NWA_NONE;
	uint16_t flags;
	int64_t at, ack = NWA_UNKNOWN, window = NWA_UNKNOWN, dsn = 0;
	uint8_t direction;
	bool stray, answers, other_number, probe;
	struct words w;

	if (p->captured < TCP_HEADER) {
		f->malformed = p->length < TCP_HEADER;
		return;
	}
	header = (p->data[12] >> 4) * 4u;
	if (header < TCP_HEADER || header > p->length) {
		f->malformed = true;
		return;
	}
	flags = get_be16(p->data + 12) & 0xfff;
	seq = get_be32(p->data + 4);
	options = (header < p->captured ? header : p->captured) - TCP_HEADER;
	read_options(&o, p->data + TCP_HEADER, options);
	if (header <= p->captured)
		f->malformed = o.malformed; /* else the option was cut by the snaplen */
	w = (struct words){.seq = seq,
			   .ack = get_be32(p->data + 8),
			   .flags = flags,
			   .stamped = o.present & NWA_OPTION_TIMESTAMP,
			   .ts_ecr = o.ts_ecr};
	flow = connection(a, p, path, path_direction, &w, &direction);
	if (!flow)
		return;
	w.direction = direction;
	if (o.has_mptcp)
		mptcp_options(a, p, &(struct mptcp_place){flow->id, path, direction}, p->data + TCP_HEADER,
			      options);
	payload = p->length - header;
	h = &flow->half[direction];
	other = &flow->half[!direction];
	row = table_row(&a->tables[nwa_table_flows], flow->id);
	/* both ends' first SYNs crossed: each sends its number again to acknowledge the other's (RFC
	 * 9293 3.5) */
	answers = (flags & (SYN | ACK)) == (SYN | ACK) && h->asked && other->asked && !h->answered;
	stray = is_stray(a, flow, &w, &o);
	if (!h->has_base && !stray) {
		half_set_base(h, seq - 1, false); /* the first byte seen is called 1 */
		row->base[direction] = h->base;
	}
	other_number =
	    flags & SYN && seq != h->base; /* until one is acknowledged it is not known which counts */
	at = stray || flags & RST ? half_relative(h, seq) : other_number ? 0 : half_unwrap(h, seq);
	if (flags & ACK) {
		if (!other->has_base && !stray) {
			half_set_base(other, w.ack - 1, false);
			row->base[!direction] = other->base;
		}
		ack = stray || flags & RST ? half_relative(other, w.ack) : half_unwrap_ack(other, w.ack);
		if (o.sack_blocks)
			first_block = (uint32_t)a->tables[nwa_table_blocks].count;
		take_sack(a, p, other, &o);
	} else {
		o.sack_blocks = 0;
	}
	if (flags & SYN || row->window_shift[direction] != NO_SHIFT)
		window = (int64_t)get_be16(p->data + 14) << (flags & SYN ? 0 : row->window_shift[direction]);
	if (flags & ACK && !(flags & RST) && !stray)
		row->heard[!direction] = true;
	if (flags & ACK && !(flags & RST) && !stray) {
		other->acknowledged = true;
		if (other->probe.there && ack > other->probe.seq)
			take_probe(a, flow, !direction);
	}
	probe = !stray && asks(h, other, at, payload, flags);
	if (!(flags & (SYN | FIN | RST)) && !stray)
		h->window_shut = !get_be16(p->data + 14);
	if (flags & (FIN | RST) && !stray) {
		h->ended = true;
		row->ended[direction] = true;
	}

	if (!payload && o.has_data_ack) {
		dsn = (int64_t)o.data_ack;
		o.present |= NWA_OPTION_DATA_ACK;
	}
	if (payload && row->mptcp)
		dsn = data_number(a, h, &o, at);

	/* SYN takes the number before the first byte, FIN the one after the last; a reset's payload is no
	 * data */
	units = payload;
	if (flags & RST || stray || probe)
		units = 0;
	if (probe && at == h->highest_ack && !h->probe.there)
		h->probe = (struct probe){
		    .seq = at,
		    .segment = a->first_segment + a->tables[nwa_table_segments].count,
		    .packet = p->number,
		    .path = path,
		    .there = true,
		};
	if (flags & SYN && (other_number || answers))
		fresh++;
	else if (flags & SYN && !stray)
		fresh += (uint32_t)ranges_add(&h->seen, at, at + 1, path, &first_path);
	if (units)
		f->new_bytes = (uint32_t)ranges_add(&h->seen, at + !!(flags & SYN),
						    at + !!(flags & SYN) + units, path, &first_path);
	fresh += f->new_bytes;
	if (flags & FIN && !(flags & RST) && !stray) {
		int64_t end = at + !!(flags & SYN) + units;

		fresh += (uint32_t)ranges_add(&h->seen, end, end + 1, path, &first_path);
		units++;
	}
	units += flags & SYN && !stray;
	if (!stray && !(flags & RST) && !probe && at + units > h->next)
		h->next = at + units;
	if (h->seen.failed)
		a->out_of_memory = true;

	f->flow = flow->id;
	f->direction = direction;
	f->payload_bytes = payload;
	f->data_chunks = payload > 0;
	f->acks = flags & ACK;
	f->is_retransmission = fresh < units;
	f->retransmitted_chunks = f->is_retransmission;
	f->on_other_path = f->is_retransmission && first_path != path;
	segment = table_push(&a->tables[nwa_table_segments]);
	*segment = (struct nwa_segment){
	    .time_ns = p->time_ns,
	    .seq = at,
	    .ack = ack,
	    .dsn = dsn,
	    .window_bytes = window,
	    .flow = flow->id,
	    .path = path,
	    .packet = p->number,
	    .payload_bytes = payload,
	    .new_bytes = f->new_bytes,
	    .ip_bytes = p->ip_bytes,
	    .frame_bytes = p->frame_bytes,
	    .ts_val = o.ts_val,
	    .ts_ecr = o.ts_ecr,
	    .first_block = first_block,
	    .window = get_be16(p->data + 14),
	    .flags = flags,
	    .options = o.present,
	    .ip_id = (uint16_t)(p->ip_id >> 16),
	    .direction = direction,
	    .sack_blocks = o.sack_blocks,
	    .tos = p->tos,
	    .is_retransmission = f->is_retransmission,
	    .stray = stray,
	    .probe = probe,
	};
}
