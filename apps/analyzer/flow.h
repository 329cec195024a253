/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds and creates flows and the paths they use, and adds packets to their totals: for analyzer.c, and for
 * tcp.c and association.c, which decide when a packet begins a new flow.
 */
#ifndef ANALYZER_FLOW_H
#define ANALYZER_FLOW_H

#include "reader.h"

/* The packet's path (row number; a new one for a new address pair) and its direction on it. */
uint32_t path_find_or_add(struct nwa *a, const struct packet *p, uint8_t *direction);
/* The path between two addresses and the direction from the first; NWA_NONE: no packet was on it. */
uint32_t path_find(const struct nwa *a, const struct address *from, const struct address *to,
		   uint8_t *direction);
/*
 * The packet's direction on its path once a fragmented datagram is whole. Between equal addresses the ports
 * decide: the fragment alone did not show them.
 */
uint8_t path_direction_of(const struct packet *p, uint8_t by_address);
/* Adds a packet in a tunnel to the tunnel's totals; `path`: that of the outermost IP packet. */
void tunnel_count(struct nwa *a, const struct packet *p, uint32_t path, uint8_t direction);
/* Adds a packet that is in no flow to its conversation's totals; `whole`: `data` is its transport header. */
void conversation_count(struct nwa *a, const struct packet *p, uint32_t path, uint8_t direction, bool whole,
			const struct findings *f);
/* The key of a flow in the maps: path and ports, the ports in the order of the path's ends a and b. */
static inline uint64_t flow_key(uint32_t path, uint8_t direction, uint16_t from, uint16_t to)
{
	uint16_t at_a = direction ? to : from, at_b = direction ? from : to;

	return (uint64_t)path << 32 | (uint64_t)at_a << 16 | at_b;
}
/* Path, direction on the path, and ports of a packet. */
struct heading {
	uint32_t path;
	uint8_t path_direction;
	uint16_t from, to;
};
/* Create a flow whose first packet is `p`, of the flow's direction `direction`. NULL: no memory. */
struct flow *flow_new(struct nwa *a, const struct packet *p, const struct heading *to, uint8_t direction);
/* The flow with row number `id`. */
static inline struct flow *flow_at(const struct nwa *a, uint32_t id)
{
	return a->flows[id];
}
/* Add a packet to the totals of its flow on this path (table flow_paths). */
void flow_count(struct nwa *a, const struct packet *p, uint32_t path, uint8_t path_direction,
		const struct findings *f);

/* More payload never seen before, of a packet that was counted already. */
void flow_add_new(struct nwa *a, struct flow *f, uint32_t path, uint8_t direction, uint32_t bytes);

/*
 * Set the base (raw number of relative number 0) if there is none, or if the handshake shows it (`known`)
 * before any number was counted relative to it.
 */
void half_set_base(struct half *h, uint32_t base, bool known);
/*
 * Convert a 32-bit number of the wire to 64 bits, relative to the base: the value nearest to the highest
 * seen.
 */
static inline int64_t half_unwrap(struct half *h, uint32_t raw)
{
	int64_t value = h->highest + (int32_t)(raw - (h->base + (uint32_t)h->highest));

	if (value > h->highest)
		h->highest = value;
	return value;
}

/* The same, of a number that may be of no use: it changes nothing. */
static inline int64_t half_relative(const struct half *h, uint32_t raw)
{
	return h->highest + (int32_t)(raw - (h->base + (uint32_t)h->highest));
}

/*
 * The same for an acknowledgement, by the highest one seen: where the capture lacks packets it can be far
 * from .highest.
 */
static inline int64_t half_unwrap_ack(struct half *h, uint32_t raw)
{
	int64_t value = h->highest_ack + (int32_t)(raw - (h->base + (uint32_t)h->highest_ack));

	if (value > h->highest_ack)
		h->highest_ack = value;
	return value;
}

#endif
