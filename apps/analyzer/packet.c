/* Link layers, IPv4 (RFC 791), IPv6 and its extension headers (RFC 8200), SCTP in UDP (RFC 6951). */
#include "packet.h"

/* https://www.tcpdump.org/linktypes.html */
enum link_type {
	LINK_NULL = 0,
	LINK_ETHERNET = 1,
	LINK_RAW_BSD = 12,
	LINK_RAW_OPENBSD = 14,
	LINK_RAW = 101,
	LINK_LOOP = 108,
	LINK_SLL = 113,
	LINK_IPV4 = 228,
	LINK_IPV6 = 229,
	LINK_SLL2 = 276,
};

enum {
	TYPE_IPV4 = 0x0800,
	TYPE_ARP = 0x0806,
	TYPE_VLAN = 0x8100,
	TYPE_IPV6 = 0x86dd,
	TYPE_MPLS = 0x8847,
	TYPE_MPLS_MULTICAST = 0x8848,
	TYPE_PPPOE = 0x8864,
	TYPE_QINQ = 0x88a8,
	TYPE_QINQ_OLD = 0x9100, /* before IEEE 802.1ad gave QinQ its own */
	TYPE_QINQ_OLDER = 0x9200,
};
enum { PPP_IPV4 = 0x0021, PPP_IPV6 = 0x0057 };
enum { IPV4_HEADER = 20, IPV6_HEADER = 40, UDP_HEADER = 8, VLAN_TAG = 4, MPLS_LABEL = 4, PPPOE_HEADER = 8 };
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

struct cursor {
	const uint8_t *at;
	uint32_t captured, length;
};

static bool skip(struct cursor *c, uint32_t bytes)
{
	if (c->captured < bytes)
		return false;
	c->at += bytes;
	c->captured -= bytes;
	c->length -= bytes;
	return true;
}

bool packet_link_known(uint16_t link_type)
{
	switch (link_type) {
	case LINK_NULL:
	case LINK_ETHERNET:
	case LINK_RAW_BSD:
	case LINK_RAW_OPENBSD:
	case LINK_RAW:
	case LINK_LOOP:
	case LINK_SLL:
	case LINK_IPV4:
	case LINK_IPV6:
	case LINK_SLL2:
		return true;
	default:
		return false;
	}
}

/* The EtherType by the IP version. 0: neither. */
static uint16_t ip_type(const struct cursor *c)
{
	if (!c->captured)
		return 0;
	return c->at[0] >> 4 == 4 ? TYPE_IPV4 : c->at[0] >> 4 == 6 ? TYPE_IPV6 : 0;
}

/* Takes MPLS labels up to the bottom of their stack (RFC 3032 2.1); below it the IP version is in the first
 * byte. */
static uint16_t below_mpls(struct cursor *c)
{
	bool bottom = false;

	while (!bottom) {
		if (c->captured < MPLS_LABEL)
			return 0;
		bottom = c->at[2] & 1;
		(void)skip(c, MPLS_LABEL);
	}
	return ip_type(c);
}

/* Takes a PPPoE session header and PPP's protocol (RFC 2516 4). */
static uint16_t below_pppoe(struct cursor *c)
{
	uint16_t protocol;

	if (c->captured < PPPOE_HEADER)
		return 0;
	protocol = get_be16(c->at + 6);
	(void)skip(c, PPPOE_HEADER);
	return protocol == PPP_IPV4 || protocol == PPP_IPV6 ? ip_type(c) : 0;
}

static bool is_vlan(uint16_t type)
{
	return type == TYPE_VLAN || type == TYPE_QINQ || type == TYPE_QINQ_OLD || type == TYPE_QINQ_OLDER;
}

/* Takes a link header of `bytes` whose EtherType is at `type_at`, and what may lie between it and IP. 0:
 * nothing to read. */
static uint16_t ethertype(struct packet *p, struct cursor *c, uint32_t type_at, uint32_t bytes)
{
	uint16_t type;

	if (c->captured < bytes)
		return 0;
	type = get_be16(c->at + type_at);
	(void)skip(c, bytes);
	if (type == TYPE_IPV4)
		return type;
	while (is_vlan(type)) {
		if (c->captured < VLAN_TAG)
			return 0;
		p->marks |= NWA_MARK_VLAN;
		type = get_be16(c->at + 2);
		(void)skip(c, VLAN_TAG);
	}
	if (type == TYPE_MPLS || type == TYPE_MPLS_MULTICAST)
		return below_mpls(c);
	if (type == TYPE_PPPOE)
		return below_pppoe(c);
	return type;
}

/* NULL and LOOP: the address family as some BSD, macOS or Linux numbers it, in some byte order. */
static bool family_is_ip(const uint8_t *at)
{
	uint32_t family = get_be32(at);

	if (family > UINT16_MAX)
		family = __builtin_bswap32(family);
	return family == 2 || family == 10 || family == 24 || family == 28 || family == 30;
}

static uint16_t link_payload(struct packet *p, struct cursor *c)
{
	switch (p->link_type) {
	case LINK_ETHERNET:
		return ethertype(p, c, 12, 14);
	case LINK_SLL:
		return ethertype(p, c, 14, 16);
	case LINK_SLL2:
		return ethertype(p, c, 0, 20);
	case LINK_NULL:
	case LINK_LOOP:
		if (c->captured < 4 || !family_is_ip(c->at))
			return 0;
		(void)skip(c, 4);
		return ip_type(c);
	case LINK_RAW:
	case LINK_RAW_BSD:
	case LINK_RAW_OPENBSD:
	case LINK_IPV4:
	case LINK_IPV6:
		return ip_type(c);
	default: /* an interface of a pcapng file whose link type is not supported */
		return 0;
	}
}

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

static bool ipv4(struct packet *p, struct cursor *c)
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
	fragment = get_be16(c->at + 6);
	cut_to(p, c, whole);
	if (fragment & (MORE_FRAGMENTS | FRAGMENT_OFFSET)) {
		p->fragment_id = get_be16(c->at + 4);
		return take_fragment(p, c, fragment & FRAGMENT_OFFSET, fragment & MORE_FRAGMENTS, header);
	}
	return skip(c, header);
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

static bool ipv6(struct packet *p, struct cursor *c)
{
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

static bool to_transport(struct packet *p, struct cursor *c, bool whole)
{
	if (whole && p->protocol == PROTOCOL_UDP)
		sctp_in_udp(p, c);
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
	return to_transport(p, &c, whole);
}

bool packet_decode(struct packet *p, const struct record *r)
{
	struct cursor c = {.at = r->data, .captured = r->captured, .length = r->length};
	bool whole = false;

	p->time_ns = r->time_ns;
	p->link_type = r->link_type;
	p->at_limit = r->at_limit;
	p->length_lost = false;
	p->frame_bytes = r->length;
	p->marks = r->captured < r->length ? NWA_MARK_TRUNCATED : 0;
	if (r->untimed)
		p->marks |= NWA_MARK_UNTIMED;
	p->kind = PACKET_OTHER;
	p->protocol = 0;
	p->tos = 0;
	p->hop_limit = 0;
	p->ip_id = 0;
	p->ip_bytes = 0;
	p->from = p->to = (struct address){0};
	switch (link_payload(p, &c)) {
	case TYPE_IPV4:
		whole = ipv4(p, &c);
		break;
	case TYPE_IPV6:
		whole = ipv6(p, &c);
		break;
	case TYPE_ARP:
		p->kind = PACKET_ARP;
		break;
	default:
		break;
	}
	return to_transport(p, &c, whole);
}
