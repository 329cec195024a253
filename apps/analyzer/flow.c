// SPDX-License-Identifier: Apache-2.0
/* Finds and creates paths and flows, and counts their packets: flow.h. */
#include <stdlib.h>

#include "flow.h"

static bool address_less(const struct address *a, const struct address *b)
{
	return a->high != b->high ? a->high < b->high : a->low < b->low;
}

/*
 * For a host that talks to itself the addresses do not show the direction, but the ports do: the lower port
 * is at end a. A packet whose ports were not captured keeps direction 0.
 */
static bool turned_by_ports(const struct packet *p)
{
	return address_equal(&p->from, &p->to) && p->captured >= 4 &&
	       (p->protocol == PROTOCOL_TCP || p->protocol == PROTOCOL_SCTP) &&
	       (!(p->marks & NWA_MARK_FRAGMENT) || p->marks & NWA_MARK_REASSEMBLED) &&
	       get_be16(p->data) > get_be16(p->data + 2);
}

uint8_t path_direction_of(const struct packet *p, uint8_t by_address)
{
	return turned_by_ports(p) ? 1 : by_address;
}

static uint64_t path_key(const struct nwa *a, const struct address *from, const struct address *to)
{
	bool swap = address_less(to, from);
	const struct address *low = swap ? to : from, *high = swap ? from : to;
	uint64_t key = map_mix(low->high ^ a->paths.salt) + low->low;

	key = map_mix(key) ^ map_mix(high->high + a->paths.salt);
	return map_mix(key + high->low);
}

uint32_t path_find(const struct nwa *a, const struct address *from, const struct address *to,
		   uint8_t *direction)
{
	uint8_t ends[2][16];
	uint32_t path;

	address_store(ends[0], from);
	address_store(ends[1], to);
	for (uint64_t key = path_key(a, from, to); map_get(&a->paths, key, &path); key++) {
		const struct nwa_path *row = table_row(&a->tables[nwa_table_paths], path);

		*direction = __builtin_memcmp(row->a, ends[0], 16) != 0;
		if (!__builtin_memcmp(*direction ? row->b : row->a, ends[0], 16) &&
		    !__builtin_memcmp(*direction ? row->a : row->b, ends[1], 16))
			return path;
	}
	return NWA_NONE;
}

uint32_t path_find_or_add(struct nwa *a, const struct packet *p, uint8_t *direction)
{
	struct table *t = &a->tables[nwa_table_paths];
	struct nwa_path *row;
	uint64_t key;
	uint32_t path;
	uint8_t from[16];

	if (a->last_path != NWA_NONE && address_equal(&p->from, &a->last_a) &&
	    address_equal(&p->to, &a->last_b)) {
		path = a->last_path;
		row = table_row(t, path);
		*direction = 0;
		goto found;
	}
	if (a->last_path != NWA_NONE && address_equal(&p->from, &a->last_b) &&
	    address_equal(&p->to, &a->last_a)) {
		path = a->last_path;
		row = table_row(t, path);
		*direction = 1;
		goto found;
	}
	address_store(from, &p->from);
	for (key = path_key(a, &p->from, &p->to);; key++) { /* two pairs of one hash: the next key */
		uint8_t to[16];

		if (!map_get(&a->paths, key, &path))
			break;
		row = table_row(t, path);
		address_store(to, &p->to);
		*direction = __builtin_memcmp(row->a, from, 16) != 0;
		if (!__builtin_memcmp(*direction ? row->b : row->a, from, 16) &&
		    !__builtin_memcmp(*direction ? row->a : row->b, to, 16))
			goto remember;
	}
	path = (uint32_t)t->count;
	row = table_push(t);
	*row = (struct nwa_path){.family = p->kind == PACKET_IPV6 ? 6 : 4};
	address_store(row->a, &p->from);
	address_store(row->b, &p->to);
	*direction = 0;
	if (!map_put(&a->paths, key, path))
		a->out_of_memory = true;
remember:
	a->last_path = path;
	a->last_a = *direction ? p->to : p->from;
	a->last_b = *direction ? p->from : p->to;
found:
	*direction = path_direction_of(p, *direction);
	row->packets[*direction]++;
	row->ip_bytes[*direction] += p->ip_bytes;
	row->frame_bytes[*direction] += p->frame_bytes;
	return path;
}

void tunnel_count(struct nwa *a, const struct packet *p, uint32_t path, uint8_t direction)
{
	struct table *t = &a->tables[nwa_table_tunnels];
	uint64_t key = (uint64_t)path << 8 | p->tunnel;
	struct nwa_tunnel *row;
	uint32_t at;

	if (!map_get(&a->tunnels, key, &at)) {
		at = (uint32_t)t->count;
		row = table_push(t);
		if (t->full || !map_put(&a->tunnels, key, at)) {
			a->out_of_memory = true;
			return;
		}
		*row = (struct nwa_tunnel){.path = path, .kind = p->tunnel};
	}
	row = table_row(t, at);
	row->packets[direction]++;
	row->outer_bytes[direction] += p->outer.ip_bytes;
	row->inner_bytes[direction] += p->ip_bytes;
}

void conversation_count(struct nwa *a, const struct packet *p, uint32_t path, uint8_t direction, bool whole,
			const struct findings *f)
{
	static const uint64_t NO_PORTS = 1ull << 63; /* no path has so high a number */
	struct table *t = &a->tables[nwa_table_conversations];
	bool ports = whole && p->protocol == PROTOCOL_UDP && p->captured >= 4;
	uint16_t from = ports ? get_be16(p->data) : 0, to = ports ? get_be16(p->data + 2) : 0;
	uint64_t key =
	    ports ? flow_key(path, direction, from, to) : NO_PORTS | (uint64_t)path << 8 | p->protocol;
	struct nwa_conversation *row;
	uint32_t at;

	if (!map_get(&a->conversations, key, &at)) {
		at = (uint32_t)t->count;
		row = table_push(t);
		if (t->full || !map_put(&a->conversations, key, at)) {
			a->out_of_memory = true;
			return;
		}
		*row = (struct nwa_conversation){.first_ns = p->time_ns,
						 .last_ns = p->time_ns,
						 .path = path,
						 .port = {direction ? to : from, direction ? from : to},
						 .protocol = p->protocol};
	}
	row = table_row(t, at);
	if (p->time_ns < row->first_ns)
		row->first_ns = p->time_ns;
	if (p->time_ns > row->last_ns)
		row->last_ns = p->time_ns;
	row->packets[direction] += 1 + f->more_packets;
	row->ip_bytes[direction] += p->ip_bytes + f->more_ip_bytes;
}

struct flow *flow_new(struct nwa *a, const struct packet *p, const struct heading *to, uint8_t direction)
{
	struct table *t = &a->tables[nwa_table_flows];
	struct nwa_flow *row;
	struct flow *f;

	if (t->count == a->flow_capacity) {
		uint64_t capacity = a->flow_capacity ? a->flow_capacity * 2 : 64;
		struct flow **flows = realloc(a->flows, capacity * sizeof(struct flow *));

		if (!flows)
			goto none;
		a->flows = flows;
		a->flow_capacity = capacity;
	}
	f = calloc(1, sizeof(*f));
	if (!f)
		goto none;
	f->id = (uint32_t)t->count;
	f->last_path = NWA_NONE;
	f->port[direction] = to->from;
	f->port[!direction] = to->to;
	row = table_push(t);
	if (t->full) {
		free(f);
		goto none;
	}
	a->flows[f->id] = f;
	*row = (struct nwa_flow){.first_ns = p->time_ns,
				 .last_ns = p->time_ns,
				 .path = to->path,
				 .path_direction = to->path_direction ^ direction,
				 .restart_of = NWA_NONE,
				 .port = {f->port[0], f->port[1]},
				 .protocol = p->protocol,
				 .window_shift = {255, 255}};
	return f;
none:
	a->out_of_memory = true;
	return NULL;
}

static struct nwa_flow_path *flow_path(struct nwa *a, struct flow *f, uint32_t path, uint8_t orientation)
{
	struct table *t = &a->tables[nwa_table_flow_paths];
	uint64_t key = (uint64_t)f->id << 32 | path;
	struct nwa_flow_path *row;

	if (f->last_path == path)
		return table_row(t, f->last_flow_path);
	f->last_path = path;
	if (map_get(&a->flow_paths, key, &f->last_flow_path))
		return table_row(t, f->last_flow_path);
	f->last_flow_path = (uint32_t)t->count;
	row = table_push(t);
	if (t->full || !map_put(&a->flow_paths, key, f->last_flow_path)) {
		a->out_of_memory = true;
		return NULL;
	}
	*row = (struct nwa_flow_path){.flow = f->id, .path = path, .path_direction = orientation};
	return row;
}

void flow_count(struct nwa *a, const struct packet *p, uint32_t path, uint8_t path_direction,
		const struct findings *f)
{
	struct nwa_flow *flow = table_row(&a->tables[nwa_table_flows], f->flow);
	struct nwa_flow_path *row = flow_path(a, flow_at(a, f->flow), path, path_direction ^ f->direction);
	uint8_t d = f->direction;

	if (!row)
		return;
	if (p->time_ns < flow->first_ns)
		flow->first_ns = p->time_ns;
	if (p->time_ns > flow->last_ns)
		flow->last_ns = p->time_ns;
	if (!row->packets[d] || p->time_ns < row->first_ns[d])
		row->first_ns[d] = p->time_ns;
	if (!row->packets[d] || p->time_ns > row->last_ns[d])
		row->last_ns[d] = p->time_ns;
	flow->copies[d] += !!(p->marks & NWA_MARK_COPY);
	row->packets[d]++;
	row->ip_bytes[d] += p->ip_bytes + f->more_ip_bytes;
	row->frame_bytes[d] += p->frame_bytes + f->more_frame_bytes;
	row->data_packets[d] += f->data_chunks > 0;
	row->payload_bytes[d] += f->payload_bytes;
	row->new_bytes[d] += f->new_bytes;
	row->retransmitted_packets[d] += f->is_retransmission;
	row->retransmitted_chunks[d] += f->retransmitted_chunks;
	row->data_chunks[d] += f->data_chunks;
	if (!f->chunks) /* TCP */
		return;
	row->sacks[d] += f->sacks;
	row->heartbeats[d] += f->heartbeats;
	row->heartbeat_acks[d] += f->heartbeat_acks;
	row->unseen_bytes[d] += f->unseen_bytes;
}

void flow_add_new(struct nwa *a, struct flow *f, uint32_t path, uint8_t direction, uint32_t bytes)
{
	struct table *t = &a->tables[nwa_table_flow_paths];
	uint32_t at;

	if (map_get(&a->flow_paths, (uint64_t)f->id << 32 | path, &at))
		((struct nwa_flow_path *)table_row(t, at))->new_bytes[direction] += bytes;
}

void half_set_base(struct half *h, uint32_t base, bool known)
{
	if (h->has_base && h->base == base) /* the handshake says what was counted from before it was seen */
		h->base_known |= known;
	if (h->base_known || (h->has_base && !known))
		return;
	if (h->has_base && (h->highest || h->highest_ack)) /* another base is in use */
		return;
	h->base = base;
	h->has_base = true;
	h->base_known = known;
}
