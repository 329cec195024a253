// SPDX-License-Identifier: Apache-2.0
/* IPv4 (RFC 791), IPv6 and its extension headers (RFC 8200), AH (RFC 4302), SCTP in UDP (RFC 6951), and what
 * tunnels carry. */
#include "decode.h"
#include "link.h"
#include "tunnel.h"

enum { IPV4_HEADER = 20, IPV6_HEADER = 40, UDP_HEADER = 8 };
enum { MORE_FRAGMENTS = 0x2000, FRAGMENT_OFFSET = 0x1fff, FRAGMENT_HEADER = 8 };
enum {
	NEXT_HOP_BY_HOP = 0,
	NEXT_ROUTING = 43,
	NEXT_FRAGMENT = 44,
	NEXT_AUTHENTICATION = 51,
	NEXT_OPTIONS = 60,
	NEXT_MOBILITY = 135,
	NEXT_HIP = 139,
	NEXT_SHIM6 = 140,
};
enum { OPTION_PAD1 = 0, OPTION_JUMBO = 0xc2 };

/*
 * Cuts what follows the IP packet (Ethernet padding). `whole`: the IP packet's length by its own word. One
 * longer than the frame that carries it lies, unless the frame was cut and its length on the wire was not
 * kept.
 */
static void cut_to(struct packet *p, struct cursor *c, uint32_t whole)
{
	if (whole > c->length && p->at_limit) {
		p->marks |= NWA_MARK_TRUNCATED;
		p->length_lost = true;
	} else if (whole > c->length) {
		p->marks |= NWA_MARK_MALFORMED;
		whole = c->length;
	}
	p->ip_bytes = c->length = whole;
	if (c->captured > whole)
		c->captured = whole;
}

/* A fragment: its data begin behind `header` bytes, at `offset` * 8 of the datagram. Always false. */
static bool take_fragment(struct packet *p, struct cursor *c, uint32_t offset, bool more, uint32_t header)
{
	p->marks |= NWA_MARK_FRAGMENT;
	p->fragment_offset = offset * 8;
	p->fragment_more = more;
	if (!skip(c, header))
		c->length = 0;
	else if (!c->length)
		p->marks |= NWA_MARK_MALFORMED; /* a fragment of nothing */
	return false;
}

/* Takes IPv4's authentication headers: IPv6's are among its extension headers. */
static bool authentication(struct packet *p, struct cursor *c)
{
	while (p->protocol == NEXT_AUTHENTICATION) {
		uint32_t bytes;

		if (c->captured < 2)
			return false;
		bytes = (c->at[1] + 2u) * 4;
		if (bytes > c->length) {
			p->marks |= NWA_MARK_MALFORMED;
			return false;
		}
		p->protocol = c->at[0];
		if (!skip(c, bytes))
			return false;
	}
	return true;
}

static inline bool ipv4(struct packet *p, struct cursor *c)
{
	uint32_t header, whole;
	uint16_t fragment;

	p->kind = PACKET_IPV4;
	if (c->captured < IPV4_HEADER || c->at[0] >> 4 != 4)
		goto bad;
	header = (c->at[0] & 15u) * 4;
	whole = get_be16(c->at + 2);
	if (!whole) /* a segment yet to be cut by the network card (TSO): the frame's length is the only one
		     */
		whole = c->length;
	p->ip_bytes = whole < c->length ? whole : c->length;
	p->tos = c->at[1];
	p->ip_id = (uint32_t)get_be16(c->at + 4) << 16 | (get_be16(c->at + 6) & 0x3fff);
	p->hop_limit = c->at[8];
	p->protocol = c->at[9];
	p->from = address_v4(c->at + 12);
	p->to = address_v4(c->at + 16);
	if (header < IPV4_HEADER || whole < header)
		goto bad;
	p->ipv4 = c->captured >= header ? c->at : NULL;
	fragment = get_be16(c->at + 6);
	cut_to(p, c, whole);
	if (fragment & (MORE_FRAGMENTS | FRAGMENT_OFFSET)) {
		p->fragment_id = get_be16(c->at + 4);
		return take_fragment(p, c, fragment & FRAGMENT_OFFSET, fragment & MORE_FRAGMENTS, header);
	}
	return skip(c, header) && (p->protocol != NEXT_AUTHENTICATION || authentication(p, c));
bad:
	if (c->captured >= IPV4_HEADER || c->captured == c->length)
		p->marks |= NWA_MARK_MALFORMED;
	return false;
}

/* Extension headers, from one of type `next` on; leaves at the transport header. */
static bool ipv6_extensions(struct packet *p, struct cursor *c, uint8_t next)
{
	for (;;) {
		uint32_t bytes;
		uint16_t fragment;

		p->protocol = next;
		switch (next) {
		case NEXT_HOP_BY_HOP:
		case NEXT_ROUTING:
		case NEXT_OPTIONS:
		case NEXT_MOBILITY:
		case NEXT_HIP:
		case NEXT_SHIM6:
		case NEXT_FRAGMENT:
		case NEXT_AUTHENTICATION:
			break;
		default:
			return true;
		}
		if (c->captured < 2)
			return false;
		bytes = (c->at[1] + 1u) * 8;
		if (next == NEXT_AUTHENTICATION)
			bytes = (c->at[1] + 2u) * 4;
		else if (next == NEXT_FRAGMENT)
			bytes = FRAGMENT_HEADER;
		if (bytes > c->length) {
			p->marks |= NWA_MARK_MALFORMED;
			return false;
		}
		if (next == NEXT_FRAGMENT) {
			p->protocol = next = c->at[0];
			if (c->captured < FRAGMENT_HEADER) {
				c->length = 0;
				p->marks |= NWA_MARK_FRAGMENT;
				return false;
			}
			fragment = get_be16(c->at + 2);
			p->fragment_id = get_be32(c->at + 4);
			if (fragment & 0xfff9) /* else the whole datagram in one (RFC 6946) */
				return take_fragment(p, c, fragment >> 3, fragment & 1, FRAGMENT_HEADER);
		}
		next = c->at[0];
		if (!skip(c, bytes))
			return false;
	}
}

/* The length in a hop-by-hop header of a jumbogram (RFC 2675 2); 0: there is none. */
static uint32_t jumbo_bytes(const struct cursor *c)
{
	const uint8_t *header = c->at + IPV6_HEADER;
	uint32_t end, at = 2;

	if (c->at[6] != NEXT_HOP_BY_HOP || c->captured < IPV6_HEADER + 8)
		return 0;
	end = (header[1] + 1u) * 8;
	if (end > c->captured - IPV6_HEADER)
		end = c->captured - IPV6_HEADER;
	while (at + 2 <= end) {
		if (header[at] == OPTION_PAD1) {
			at++;
			continue;
		}
		if (header[at] == OPTION_JUMBO && header[at + 1] == 4 && at + 6 <= end) {
			uint32_t bytes = get_be32(header + at + 2);

			return bytes > UINT16_MAX ? bytes : 0;
		}
		at += header[at + 1] + 2u;
	}
	return 0;
}

static bool ipv6(struct packet *p, struct cursor *c)
{
	uint32_t jumbo;

	uint8_t next;

	p->kind = PACKET_IPV6;
	if (c->captured < IPV6_HEADER || c->at[0] >> 4 != 6) {
		if (c->captured >= IPV6_HEADER || c->captured == c->length)
			p->marks |= NWA_MARK_MALFORMED;
		return false;
	}
	p->ip_bytes = IPV6_HEADER + (uint32_t)get_be16(c->at + 4);
	if (p->ip_bytes == IPV6_HEADER && c->length > IPV6_HEADER && c->at[6] == PROTOCOL_TCP)
		p->ip_bytes = c->length; /* TSO, as above */
	jumbo = p->ip_bytes == IPV6_HEADER ? jumbo_bytes(c) : 0;
	if (jumbo && jumbo <= UINT32_MAX - IPV6_HEADER)
		p->ip_bytes += jumbo;
	p->tos = (uint8_t)(get_be16(c->at) >> 4);
	p->hop_limit = c->at[7];
	p->from = address_v6(c->at + 8);
	p->to = address_v6(c->at + 24);
	next = c->at[6];
	cut_to(p, c, p->ip_bytes);
	(void)skip(c, IPV6_HEADER);
	return ipv6_extensions(p, c, next);
}

static void sctp_in_udp(struct packet *p, struct cursor *c)
{
	if (c->captured < UDP_HEADER || c->length < UDP_HEADER)
		return;
	if (get_be16(c->at) != SCTP_UDP_PORT && get_be16(c->at + 2) != SCTP_UDP_PORT)
		return;
	(void)skip(c, UDP_HEADER);
	p->marks |= NWA_MARK_UDP;
	p->protocol = PROTOCOL_SCTP;
}

/* The IP packet or whatever else the EtherType says. Returns whether the transport header follows. */
static bool network(struct packet *p, struct cursor *c, uint16_t type)
{
	switch (type) {
	case TYPE_IPV4:
		return ipv4(p, c);
	case TYPE_IPV6:
		return ipv6(p, c);
	case TYPE_ARP:
		p->kind = PACKET_ARP;
		return false;
	default:
		return false;
	}
}

/*
 * Enters a tunnel: from now on `p` is the IP packet within. Only what is a whole IP header of a length that
 * can be is believed to be within: else the carrier stays what it was, an IP packet of some other protocol.
 */
static __attribute__((noinline)) bool enter_tunnel(struct packet *p, struct cursor *c, bool *whole)
{
	struct packet inner = *p;
	struct cursor within = *c;
	uint16_t type = 0;
	uint8_t tunnel = tunnel_header(&inner, &within, &type);

	if (!tunnel || (type != TYPE_IPV4 && type != TYPE_IPV6))
		return false;
	inner.marks &= (uint16_t)~NWA_MARK_MALFORMED;
	inner.ip_bytes = 0;
	inner.ip_id = 0;
	inner.kind = PACKET_OTHER;
	*whole = network(&inner, &within, type);
	if (!inner.ip_bytes || inner.marks & NWA_MARK_MALFORMED)
		return false;
	if (!p->tunnel) {
		inner.tunnel = tunnel;
		inner.outer = (struct outer){p->from, p->to, p->ip_bytes, p->kind};
	}
	inner.marks |= p->marks | NWA_MARK_TUNNEL;
	*p = inner;
	*c = within;
	return true;
}

static inline bool to_transport(struct packet *p, struct cursor *c, bool whole)
{
	while (whole && p->protocol != PROTOCOL_TCP && p->protocol != PROTOCOL_SCTP) {
		if (p->protocol == PROTOCOL_UDP)
			sctp_in_udp(p, c);
		if (p->protocol == PROTOCOL_SCTP || !enter_tunnel(p, c, &whole))
			break;
	}
	p->data = c->at;
	p->captured = c->captured;
	p->length = c->length;
	return whole;
}

bool packet_decode_datagram(struct packet *p)
{
	struct cursor c = {.at = p->data, .captured = p->captured, .length = p->length};
	bool whole = true;

	if (p->kind == PACKET_IPV6)
		whole = p->protocol != NEXT_FRAGMENT && ipv6_extensions(p, &c, p->protocol);
	else if (p->protocol == NEXT_AUTHENTICATION)
		whole = authentication(p, &c);
	return to_transport(p, &c, whole);
}

/* As nearly every frame is. */
static inline bool ethernet_ipv4(const struct packet *p, struct cursor *c)
{
	return p->link_type == LINK_ETHERNET && c->captured >= ETHERNET_HEADER &&
	       get_be16(c->at + 12) == TYPE_IPV4 && skip(c, ETHERNET_HEADER);
}

bool packet_decode(struct packet *p, const struct record *r)
{
	struct cursor c = {.at = r->data, .captured = r->captured, .length = r->length};
	uint16_t type;

	p->time_ns = r->time_ns;
	p->link_type = r->link_type;
	p->at_limit = r->at_limit;
	p->big_endian = r->big_endian;
	p->length_lost = p->fragment_more = false;
	p->fragment_id = p->fragment_offset = 0;
	p->frame_bytes = r->length;
	p->marks = r->captured < r->length ? NWA_MARK_TRUNCATED : 0;
	if (r->untimed)
		p->marks |= NWA_MARK_UNTIMED;
	p->kind = PACKET_OTHER;
	p->ipv4 = NULL;
	p->protocol = 0;
	p->tos = 0;
	p->hop_limit = 0;
	p->ip_id = 0;
	p->ip_bytes = 0;
	p->tunnel = 0;
	p->from = p->to = (struct address){0};
	type = ethernet_ipv4(p, &c) ? TYPE_IPV4 : link_payload(p, &c);
	return to_transport(p, &c, network(p, &c, type));
}
