/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a TCP connection was opened (RFC 9293 3.5): which SYN and SYN+ACK were acknowledged, and which segments
 * are of another connection of the same ports.
 */
#ifndef ANALYZER_OPENING_H
#define ANALYZER_OPENING_H

#include "reader.h"

enum { NO_SHIFT = 255 };

/* A segment's own words, for the functions below. */
struct words {
	uint32_t seq, ack;
	uint16_t flags;
	uint8_t direction;
	bool stamped;
	uint32_t ts_ecr;
};

/* Take a SYN or SYN+ACK. Returns whether it is stray: the connection is established by another one. */
bool opening_syn(struct nwa *a, struct flow *f, const struct offer *o, uint16_t flags);
/*
 * Take any other segment: one that acknowledges a SYN+ACK settles which one the connection is made of.
 * Returns whether it is stray: it fits none.
 */
bool opening_segment(struct nwa *a, struct flow *f, const struct words *w);
/*
 * How far a segment is from what a connection has sent and acknowledged, in bytes; UINT32_MAX: nothing is
 * known of it.
 */
uint32_t opening_distance(const struct flow *f, const struct words *w);

/*
 * Whether a reset's number is far from all that its sender sent and the other end acknowledged: it must be
 * the next one that the other end expects (RFC 5961 3), but the capture may lack what came just before.
 */
bool opening_beyond(const struct half *h, uint32_t seq);

#endif
