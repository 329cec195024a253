/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segment: a TCP segment in an IPv4 packet: read, changed, and a bare acknowledgement made. Pure.
 *
 * What is not a whole, unfragmented TCP segment over IPv4 is not read: an agent lets it pass as it is.
 * Checksums are kept right by the difference (RFC 1624), so a segment that was wrong stays wrong.
 */
#ifndef NETWARP_SEGMENT_H
#define NETWARP_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SEGMENT_FIN 0x01
#define SEGMENT_SYN 0x02
#define SEGMENT_RST 0x04
#define SEGMENT_ACK 0x10

#define SEGMENT_BARE_MAX 120 /* two headers with all their options */

/* Addresses and ports as on the wire. */
struct segment_ends {
	uint32_t source, destination;
	uint16_t source_port, destination_port;
};

struct segment {
	uint8_t *data; /* the packet from its IPv4 header on: whose it is the caller knows */
	size_t len;    /* of the packet; the buffer may be longer */
	size_t tcp;    /* offset of the TCP header */
	struct segment_ends ends;
	uint32_t seq, ack;
	uint16_t window; /* as in the header, not scaled */
	uint8_t flags;
	uint32_t payload;    /* bytes */
	bool sack;	     /* has a SACK option with blocks */
	bool duplicate_sack; /* the first of them says what has come twice (RFC 2883) */
	bool
	    missing; /* a block that says what has come once lies above `ack`: what is between is not there */
};

/* Sequence numbers wrap (RFC 9293, 3.4). */
static inline bool seq_before(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

/* The sequence number behind the segment: SYN and FIN take one each. */
static inline uint32_t segment_end(const struct segment *segment)
{
	return segment->seq + segment->payload + !!(segment->flags & SEGMENT_SYN) +
	       !!(segment->flags & SEGMENT_FIN);
}

/* Read data[0..len). False: it is nothing that an agent understands. */
bool segment_read(uint8_t *data, size_t len, struct segment *segment);

/* Change the acknowledgement number and the window in the packet, its checksum with them. */
void segment_set_ack(struct segment *segment, uint32_t ack);
void segment_set_window(struct segment *segment, uint16_t window);

/* Put no-operations in the place of the SACK option's blocks. */
void segment_hide_sack(struct segment *segment);

/*
 * The headers of `segment` without payload, FIN and SACK blocks into to[0..SEGMENT_BARE_MAX): the
 * acknowledgement that the same host could send behind it. Returns its length.
 */
size_t segment_bare(const struct segment *segment, uint8_t *to);

#endif
