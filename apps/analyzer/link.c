// SPDX-License-Identifier: Apache-2.0
/* Documented in link.h. The formats: https://www.tcpdump.org/linktypes.html */
#include "link.h"
#include "wireless.h"

enum link_type {
	LINK_NULL = 0,
	LINK_PPP = 9,
	LINK_FDDI = 10,
	LINK_RAW_BSD = 12,
	LINK_RAW_OPENBSD = 14,
	LINK_PPP_HDLC = 50,
	LINK_PPP_ETHERNET = 51,
	LINK_ATM = 100,
	LINK_RAW = 101,
	LINK_CISCO_HDLC = 104,
	LINK_IEEE802_11 = 105,
	LINK_LOOP = 108,
	LINK_SLL = 113,
	LINK_PRISM = 119,
	LINK_RADIOTAP = 127,
	LINK_AVS = 163,
	LINK_PPI = 192,
	LINK_PPP_DIRECTION = 204,
	LINK_IPV4 = 228,
	LINK_IPV6 = 229,
	LINK_NFLOG = 239,
	LINK_PKTAP = 258,
	LINK_SLL2 = 276,
};

enum {
	TYPE_LENGTH_MAX =
	    1500, /* up to it a length (Linux cooked: a number of its own), and IEEE 802.2 follows */
	TYPE_ETHERNET = 0x6558,
	TYPE_VLAN = 0x8100,
	TYPE_PPP = 0x880b,
	TYPE_MPLS = 0x8847,
	TYPE_MPLS_MULTICAST = 0x8848,
	TYPE_PPPOE = 0x8864,
	TYPE_QINQ = 0x88a8,
	TYPE_FABRICPATH = 0x8903,
	TYPE_CISCO_METADATA = 0x8909,
	TYPE_QINQ_OLD = 0x9100, /* before IEEE 802.1ad gave QinQ its own */
	TYPE_QINQ_OLDER = 0x9200,
};
enum { PPP_IPV4 = 0x0021, PPP_IPV6 = 0x0057, PPP_MPLS = 0x0281 };
enum { VLAN_TAG = 4, MPLS_LABEL = 4, PPPOE_HEADER = 8, CISCO_METADATA = 8, FABRICPATH = 2 };
enum { LLC_SNAP = 0xaa, LLC_IP = 0x06, LLC_UNNUMBERED = 0x03, SNAP_HEADER = 8 };
enum { NFLOG_HEADER = 4, NFLOG_PAYLOAD = 9, PKTAP_HEADER_MIN = 12 };

bool packet_link_known(uint16_t link_type)
{
	switch (link_type) {
	case LINK_NULL:
	case LINK_ETHERNET:
	case LINK_PPP:
	case LINK_FDDI:
	case LINK_RAW_BSD:
	case LINK_RAW_OPENBSD:
	case LINK_PPP_HDLC:
	case LINK_PPP_ETHERNET:
	case LINK_ATM:
	case LINK_RAW:
	case LINK_CISCO_HDLC:
	case LINK_IEEE802_11:
	case LINK_LOOP:
	case LINK_SLL:
	case LINK_PRISM:
	case LINK_RADIOTAP:
	case LINK_AVS:
	case LINK_PPI:
	case LINK_PPP_DIRECTION:
	case LINK_IPV4:
	case LINK_IPV6:
	case LINK_NFLOG:
	case LINK_PKTAP:
	case LINK_SLL2:
		return true;
	default:
		return false;
	}
}

uint16_t link_ip_type(const struct cursor *c)
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
	return link_ip_type(c);
}

/* Takes PPP's protocol, of two bytes or, compressed, of one (RFC 1661 2, 6.5). */
static uint16_t below_ppp(struct cursor *c)
{
	uint16_t protocol;

	if (c->captured < 2)
		return 0;
	if (c->at[0] & 1) {
		protocol = c->at[0];
		(void)skip(c, 1);
	} else {
		protocol = get_be16(c->at);
		(void)skip(c, 2);
	}
	if (protocol == PPP_MPLS)
		return below_mpls(c);
	return protocol == PPP_IPV4 || protocol == PPP_IPV6 ? link_ip_type(c) : 0;
}

/* Takes the address and control bytes of PPP in HDLC-like framing, where they are there (RFC 1662 3.1). */
static uint16_t below_hdlc(struct cursor *c)
{
	if (c->captured >= 2 && c->at[0] == 0xff && c->at[1] == 0x03)
		(void)skip(c, 2);
	return below_ppp(c);
}

/* RFC 2516 4 */
static uint16_t below_pppoe(struct cursor *c)
{
	enum { WITHOUT_PROTOCOL = PPPOE_HEADER - 2 };

	return skip(c, WITHOUT_PROTOCOL) ? below_ppp(c) : 0;
}

/* Takes IEEE 802.2's header and, behind it, SNAP's. */
static uint16_t below_llc(struct packet *p, struct cursor *c)
{
	uint16_t type;

	if (c->captured < 3 || c->at[2] != LLC_UNNUMBERED)
		return 0;
	if (c->at[0] == LLC_IP && c->at[1] == LLC_IP) {
		(void)skip(c, 3);
		return link_ip_type(c);
	}
	if (c->at[0] != LLC_SNAP || c->at[1] != LLC_SNAP || c->captured < SNAP_HEADER)
		return 0;
	/* the EtherType's organisation code: RFC 1042, and 802.1H's for bridges */
	if (c->at[3] || c->at[4] || (c->at[5] && c->at[5] != 0xf8))
		return 0;
	type = get_be16(c->at + 6);
	(void)skip(c, SNAP_HEADER);
	return type > TYPE_LENGTH_MAX ? link_behind(p, c, type) : 0;
}

static bool is_vlan(uint16_t type)
{
	return type == TYPE_VLAN || type == TYPE_QINQ || type == TYPE_QINQ_OLD || type == TYPE_QINQ_OLDER;
}

/* Takes a header of `bytes` whose last two are the EtherType of what follows. */
static uint16_t next_type(struct cursor *c, uint32_t bytes)
{
	uint16_t type;

	if (c->captured < bytes)
		return 0;
	type = get_be16(c->at + bytes - 2);
	(void)skip(c, bytes);
	return type;
}

uint16_t link_behind(struct packet *p, struct cursor *c, uint16_t type)
{
	for (;;) {
		if (is_vlan(type)) {
			p->marks |= NWA_MARK_VLAN;
			type = next_type(c, VLAN_TAG);
		} else if (type == TYPE_CISCO_METADATA) {
			type = next_type(c, CISCO_METADATA);
		} else if (type ==
			   TYPE_FABRICPATH) { /* Cisco's: a tree and a hop count, then the whole frame */
			type = next_type(c, FABRICPATH + ETHERNET_HEADER);
		} else if (type == TYPE_ETHERNET) {
			type = next_type(c, ETHERNET_HEADER);
		} else {
			break;
		}
		if (!type)
			return 0;
	}
	if (type == TYPE_MPLS || type == TYPE_MPLS_MULTICAST)
		return below_mpls(c);
	if (type == TYPE_PPPOE)
		return below_pppoe(c);
	if (type == TYPE_PPP)
		return below_hdlc(c);
	if (type <= TYPE_LENGTH_MAX)
		return below_llc(p, c);
	return type;
}

/* Takes a link header of `bytes` whose EtherType is at `type_at`, and what may lie between it and IP. */
static uint16_t ethertype(struct packet *p, struct cursor *c, uint32_t type_at, uint32_t bytes)
{
	uint16_t type;

	if (c->captured < bytes)
		return 0;
	type = get_be16(c->at + type_at);
	(void)skip(c, bytes);
	return type == TYPE_IPV4 ? type : link_behind(p, c, type);
}

/* NULL and LOOP: the address family as some BSD, macOS or Linux numbers it, in some byte order. */
static bool family_is_ip(const uint8_t *at)
{
	uint32_t family = get_be32(at);

	if (family > UINT16_MAX)
		family = __builtin_bswap32(family);
	return family == 2 || family == 10 || family == 24 || family == 28 || family == 30;
}

/* Netfilter's log: attributes in the byte order of the capturing machine, the packet among them. */
static uint16_t below_nflog(const struct packet *p, struct cursor *c)
{
	if (!skip(c, NFLOG_HEADER))
		return 0;
	while (c->captured >= 4) {
		uint32_t length = p->big_endian ? get_be16(c->at) : get_le16(c->at);
		uint16_t type = p->big_endian ? get_be16(c->at + 2) : get_le16(c->at + 2);

		if (length < 4)
			return 0;
		if ((type & 0x7fff) == NFLOG_PAYLOAD) {
			(void)skip(c, 4);
			return link_ip_type(c);
		}
		if (!skip(c, (length + 3u) & ~3u))
			return 0;
	}
	return 0;
}

/* A header before a frame of another link type, which it names: Apple's PKTAP, and PPI. */
static bool take_wrapper(struct packet *p, struct cursor *c)
{
	uint32_t bytes, type;

	if (p->link_type == LINK_PKTAP) {
		if (c->captured < PKTAP_HEADER_MIN)
			return false;
		bytes = get_le32(c->at);
		type = get_le32(c->at + 8);
	} else {
		if (c->captured < 8)
			return false;
		bytes = get_le16(c->at + 2);
		type = get_le32(c->at + 4);
	}
	if (type > UINT16_MAX || type == LINK_PKTAP || type == LINK_PPI || !skip(c, bytes))
		return false;
	p->link_type = (uint16_t)type;
	return true;
}

static uint16_t below_wireless(struct packet *p, struct cursor *c, enum wireless_header header)
{
	return wireless_data(c, header) ? below_llc(p, c) : 0;
}

uint16_t link_payload(struct packet *p, struct cursor *c)
{
	if ((p->link_type == LINK_PKTAP || p->link_type == LINK_PPI) && !take_wrapper(p, c))
		return 0;
	switch (p->link_type) {
	case LINK_ETHERNET:
		return ethertype(p, c, 12, ETHERNET_HEADER);
	case LINK_SLL:
		return ethertype(p, c, 14, 16);
	case LINK_SLL2:
		return ethertype(p, c, 0, 20);
	case LINK_NULL:
	case LINK_LOOP:
		if (c->captured < 4 || !family_is_ip(c->at))
			return 0;
		(void)skip(c, 4);
		return link_ip_type(c);
	case LINK_RAW:
	case LINK_RAW_BSD:
	case LINK_RAW_OPENBSD:
	case LINK_IPV4:
	case LINK_IPV6:
		return link_ip_type(c);
	case LINK_PPP:
	case LINK_PPP_HDLC: /* Cisco's framing too: what is captured on such a line may say either */
		if (c->captured >= 2 && (c->at[0] == 0x0f || c->at[0] == 0x8f) && !c->at[1])
			return ethertype(p, c, 2, 4);
		return below_hdlc(c);
	case LINK_PPP_DIRECTION:
		return skip(c, 1) ? below_hdlc(c) : 0;
	case LINK_PPP_ETHERNET:
		return below_pppoe(c);
	case LINK_CISCO_HDLC:
		return ethertype(p, c, 2, 4);
	case LINK_FDDI:
		return skip(c, 13) ? below_llc(p, c) : 0;
	case LINK_ATM:
		return below_llc(p, c);
	case LINK_IEEE802_11:
		return below_wireless(p, c, WIRELESS_BARE);
	case LINK_RADIOTAP:
		return below_wireless(p, c, WIRELESS_RADIOTAP);
	case LINK_PRISM:
		return below_wireless(p, c, WIRELESS_PRISM);
	case LINK_AVS:
		return below_wireless(p, c, WIRELESS_AVS);
	case LINK_NFLOG:
		return below_nflog(p, c);
	default: /* an interface of a pcapng file whose link type is not supported */
		return 0;
	}
}
