// SPDX-License-Identifier: Apache-2.0
/* Documented in tunnel.h. RFC 2003 and 2473 (IP in IP), RFC 2784, 2890 and 2637 (GRE),
 * RFC 7348 (VXLAN), RFC 8926 (Geneve), 3GPP TS 29.281 (GTP-U), draft-foschiano-erspan (ERSPAN). */
#include "tunnel.h"
#include "link.h"

enum { PROTOCOL_IPV4 = 4, PROTOCOL_IPV6 = 41, PROTOCOL_GRE = 47, UDP_HEADER = 8 };
enum { PORT_GTP_U = 2152, PORT_VXLAN = 4789, PORT_GENEVE = 6081, PORT_VXLAN_LINUX = 8472 };
enum { TYPE_ETHERNET = 0x6558, TYPE_ERSPAN = 0x88be, TYPE_ERSPAN_3 = 0x22eb };
enum {
	GRE_CHECKSUM = 0x8000,
	GRE_ROUTING = 0x4000,
	GRE_KEY = 0x2000,
	GRE_SEQUENCE = 0x1000,
	GRE_ACKNOWLEDGEMENT = 0x0080,
	GRE_VERSION = 7,
};
enum { ERSPAN_HEADER = 8, ERSPAN_3_HEADER = 12, ERSPAN_3_MORE = 8 };
enum { VXLAN_HEADER = 8, VXLAN_HAS_ID = 0x08, GENEVE_HEADER = 8 };
enum { GTP_HEADER = 8, GTP_OPTIONAL = 4, GTP_VERSION_1 = 0x30, GTP_VERSION_MASK = 0xf0, GTP_EXTENDED = 4 };
enum { GTP_ANY_OPTIONAL = 7, GTP_DATA = 255 };

static uint16_t below_gre(struct packet *p, struct cursor *c)
{
	uint32_t bytes = 4;
	uint16_t flags, type;

	if (c->captured < bytes)
		return 0;
	flags = get_be16(c->at);
	type = get_be16(c->at + 2);
	if (flags & GRE_ROUTING || (flags & GRE_VERSION) > 1)
		return 0;
	bytes += flags & GRE_CHECKSUM ? 4 : 0;
	bytes += flags & GRE_KEY ? 4 : 0;
	bytes += flags & GRE_SEQUENCE ? 4 : 0;
	bytes += (flags & GRE_VERSION) == 1 && flags & GRE_ACKNOWLEDGEMENT ? 4 : 0; /* PPTP */
	if (!skip(c, bytes))
		return 0;
	if (type == TYPE_ERSPAN) { /* type I has neither sequence number nor header */
		if (flags & GRE_SEQUENCE && !skip(c, ERSPAN_HEADER))
			return 0;
		type = TYPE_ETHERNET;
	} else if (type == TYPE_ERSPAN_3) {
		if (c->captured < ERSPAN_3_HEADER)
			return 0;
		if (!skip(c,
			  c->at[ERSPAN_3_HEADER - 1] & 1 ? ERSPAN_3_HEADER + ERSPAN_3_MORE : ERSPAN_3_HEADER))
			return 0;
		type = TYPE_ETHERNET;
	}
	return link_behind(p, c, type);
}

static uint16_t below_vxlan(struct packet *p, struct cursor *c)
{
	/* all bits but one are reserved, and 0 */
	if (c->captured < VXLAN_HEADER || c->at[0] != VXLAN_HAS_ID || c->at[7])
		return 0;
	(void)skip(c, VXLAN_HEADER);
	return link_behind(p, c, TYPE_ETHERNET);
}

static uint16_t below_geneve(struct packet *p, struct cursor *c)
{
	uint16_t type;

	if (c->captured < GENEVE_HEADER || c->at[0] >> 6)
		return 0;
	type = get_be16(c->at + 2);
	return skip(c, GENEVE_HEADER + (c->at[0] & 0x3fu) * 4) ? link_behind(p, c, type) : 0;
}

static uint16_t below_gtp(struct cursor *c)
{
	uint8_t flags, next;

	if (c->captured < GTP_HEADER || (c->at[0] & GTP_VERSION_MASK) != GTP_VERSION_1 ||
	    c->at[1] != GTP_DATA)
		return 0;
	flags = c->at[0];
	(void)skip(c, GTP_HEADER);
	if (!(flags & GTP_ANY_OPTIONAL))
		return link_ip_type(c);
	if (c->captured < GTP_OPTIONAL)
		return 0;
	next = flags & GTP_EXTENDED ? c->at[3] : 0;
	(void)skip(c, GTP_OPTIONAL);
	while (next) { /* an extension header's length is in words of 4 bytes; its last byte is the next one's
			  type */
		uint32_t bytes;

		if (!c->captured || !c->at[0])
			return 0;
		bytes = c->at[0] * 4u;
		if (c->captured < bytes)
			return 0;
		next = c->at[bytes - 1];
		(void)skip(c, bytes);
	}
	return link_ip_type(c);
}

static uint8_t in_udp(struct packet *p, struct cursor *c, uint16_t *type)
{
	uint16_t port;

	if (c->captured < UDP_HEADER)
		return 0;
	port = get_be16(c->at + 2);
	if (port != PORT_GTP_U && port != PORT_VXLAN && port != PORT_VXLAN_LINUX && port != PORT_GENEVE)
		return 0;
	(void)skip(c, UDP_HEADER);
	if (port == PORT_GTP_U) {
		*type = below_gtp(c);
		return NWA_TUNNEL_GTP_U;
	}
	if (port == PORT_GENEVE) {
		*type = below_geneve(p, c);
		return NWA_TUNNEL_GENEVE;
	}
	*type = below_vxlan(p, c);
	return NWA_TUNNEL_VXLAN;
}

uint8_t tunnel_header(struct packet *p, struct cursor *c, uint16_t *type)
{
	switch (p->protocol) {
	case PROTOCOL_IPV4:
		*type = TYPE_IPV4;
		return NWA_TUNNEL_IP;
	case PROTOCOL_IPV6:
		*type = TYPE_IPV6;
		return NWA_TUNNEL_IP;
	case PROTOCOL_GRE:
		*type = below_gre(p, c);
		return NWA_TUNNEL_GRE;
	case PROTOCOL_UDP:
		return in_udp(p, c, type);
	default:
		return 0;
	}
}
