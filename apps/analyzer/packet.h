/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A decoded packet, up to the first byte of the transport header. decode.c fills it in, tcp.c, sctp.c and
 * flow.c read it. No byte beyond the captured ones is read.
 */
#ifndef ANALYZER_PACKET_H
#define ANALYZER_PACKET_H

#include "netwarp_analyzer.h"
#include "capture_file.h"

enum {
	PROTOCOL_ICMP = 1,
	PROTOCOL_TCP = 6,
	PROTOCOL_UDP = 17,
	PROTOCOL_ICMPV6 = 58,
	PROTOCOL_SCTP = 132,
	SCTP_UDP_PORT = 9899
};

enum packet_kind { PACKET_OTHER, PACKET_ARP, PACKET_IPV4, PACKET_IPV6 };

/* An IP address as two big-endian numbers; IPv4 as ::ffff:a.b.c.d. */
struct address {
	uint64_t high, low;
};

/* The outermost IP packet of a packet in a tunnel. */
struct outer {
	struct address from, to;
	uint32_t ip_bytes;
	uint8_t kind;
};

struct packet {
	int64_t time_ns;
	struct address from, to;
	const uint8_t *data; /* transport header and payload, of which `captured` bytes can be read */
	const uint8_t *ipv4; /* its IPv4 header, whole; NULL: none */
	uint32_t captured;
	uint32_t length; /* bytes of transport header and payload, as the IP header says */
	uint32_t ip_bytes;
	uint32_t frame_bytes;
	uint32_t number; /* of the record in the merged capture, from 0 */
	uint32_t fragment_id;
	uint32_t fragment_offset; /* of an IP fragment's data in its datagram */
	uint16_t source;
	uint16_t marks;
	uint32_t ip_id; /* IPv4: identification and fragment word; IPv6: 0 */
	uint8_t hop_limit;
	uint8_t kind;
	uint8_t protocol;
	uint8_t tos;
	bool fragment_more; /* the IP flag more-fragments */
	bool at_limit;	    /* as in struct record */
	bool big_endian;
	bool length_lost; /* truncated by the capture; only the IP header shows it */
	uint16_t link_type;
	uint8_t tunnel; /* NWA_TUNNEL_* of the outermost tunnel; the fields above are then of the innermost IP
			   packet */
	struct outer outer; /* only with .tunnel */
};

static inline uint16_t get_be16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

static inline uint16_t get_le16(const uint8_t *at)
{
	return (uint16_t)(at[1] << 8 | at[0]);
}

static inline uint32_t get_le32(const uint8_t *at)
{
	return (uint32_t)at[3] << 24 | (uint32_t)at[2] << 16 | (uint32_t)at[1] << 8 | at[0];
}

static inline uint32_t get_be32(const uint8_t *at)
{
	uint32_t v;

	__builtin_memcpy(&v, at, sizeof(v));
	return __builtin_bswap32(v);
}

static inline uint64_t get_be64(const uint8_t *at)
{
	uint64_t v;

	__builtin_memcpy(&v, at, sizeof(v));
	return __builtin_bswap64(v);
}

static inline bool address_equal(const struct address *a, const struct address *b)
{
	return a->high == b->high && a->low == b->low;
}

static inline struct address address_v4(const uint8_t *at)
{
	return (struct address){.low = 0xffff00000000u | get_be32(at)};
}

static inline struct address address_v6(const uint8_t *at)
{
	return (struct address){.high = get_be64(at), .low = get_be64(at + 8)};
}

static inline void address_store(uint8_t *to, const struct address *a)
{
	uint64_t high = __builtin_bswap64(a->high), low = __builtin_bswap64(a->low);

	__builtin_memcpy(to, &high, 8);
	__builtin_memcpy(to + 8, &low, 8);
}

#endif
