/* Flows and the paths they use: finding them, new ones, their totals. */
#ifndef ANALYZER_FLOW_H
#define ANALYZER_FLOW_H

#include "reader.h"

/* The packet's path (row number) and its direction on it. */
uint32_t path_find_or_add(struct nwa *a, const struct packet *p, uint8_t *direction);
/* Its direction on the path, once a datagram of fragments is whole: between equal addresses the ports decide.
 */
uint8_t path_direction_of(const struct packet *p, uint8_t by_address);
/* Counts a tunnel's packet, whose outermost IP packet has this path. */
void tunnel_count(struct nwa *a, const struct packet *p, uint32_t path, uint8_t direction);
/* Ports in the order of the path's two ends: the key of a flow on that path. */
static inline uint64_t flow_key(uint32_t path, uint8_t direction, uint16_t from, uint16_t to)
{
	uint16_t at_a = direction ? to : from, at_b = direction ? from : to;

	return (uint64_t)path << 32 | (uint64_t)at_a << 16 | at_b;
}
/* Where a packet goes: its path, its direction on it, its ports. */
struct heading {
	uint32_t path;
	uint8_t path_direction;
	uint16_t from, to;
};
/* A new flow; this packet is of its direction `direction`. NULL: no memory. */
struct flow *flow_new(struct nwa *a, const struct packet *p, const struct heading *to, uint8_t direction);
/* Flow by id. */
static inline struct flow *flow_at(const struct nwa *a, uint32_t id)
{
	return a->flows[id];
}
/* Adds one packet to the totals of (flow, path). */
void flow_count(struct nwa *a, const struct packet *p, uint32_t path, uint8_t path_direction,
		const struct findings *f);

/* Sets the base if there is none, or if the handshake gives it before any number was counted from it. */
void half_set_base(struct half *h, uint32_t base, bool known);
/* The 64-bit number nearest to the highest one seen. */
static inline int64_t half_unwrap(struct half *h, uint32_t raw)
{
	int64_t value = h->highest + (int32_t)(raw - (h->base + (uint32_t)h->highest));

	if (value > h->highest)
		h->highest = value;
	return value;
}

static inline int64_t half_unwrap_ack(struct half *h, uint32_t raw)
{
	int64_t value = h->highest_ack + (int32_t)(raw - (h->base + (uint32_t)h->highest_ack));

	if (value > h->highest_ack)
		h->highest_ack = value;
	return value;
}

#endif
