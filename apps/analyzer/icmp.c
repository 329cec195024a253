// SPDX-License-Identifier: Apache-2.0
/* ICMP (RFC 792, 1191) and ICMPv6 (RFC 4443) errors. They quote the packet that they are about. */
#include "flow.h"
#include "icmp.h"

enum { UNREACHABLE = 3, TIME_EXCEEDED = 11, PARAMETER_PROBLEM = 12, TOO_BIG = 4 };
enum { V6_TOO_BIG = 2, V6_PARAMETER_PROBLEM = 4 };
enum { ICMP_HEADER = 8, IPV4_HEADER = 20, IPV6_HEADER = 40, QUOTED = 8 };
enum { HOP_BY_HOP = 0, ROUTING = 43, OPTIONS = 60 };

static bool is_error(const struct packet *p)
{
	uint8_t type = p->data[0];

	if (p->protocol == PROTOCOL_ICMPV6)
		return type && type <= V6_PARAMETER_PROBLEM;
	return type == UNREACHABLE || type == TIME_EXCEEDED || type == PARAMETER_PROBLEM;
}

/* The quoted packet's addresses and its transport header, of which QUOTED bytes are there; NULL: none. */
static const uint8_t *quoted(const struct packet *p, struct address *from, struct address *to,
			     uint8_t *protocol)
{
	const uint8_t *ip = p->data + ICMP_HEADER;
	uint32_t there = p->captured - ICMP_HEADER, header = IPV6_HEADER;

	if (there < IPV4_HEADER)
		return NULL;
	if (ip[0] >> 4 == 4) {
		header = (ip[0] & 15u) * 4;
		*from = address_v4(ip + 12);
		*to = address_v4(ip + 16);
		*protocol = ip[9];
		if (header < IPV4_HEADER ||
		    get_be16(ip + 6) & 0x1fff) /* of a later fragment no header is quoted */
			return NULL;
	} else {
		if (ip[0] >> 4 != 6 || there < IPV6_HEADER)
			return NULL;
		*from = address_v6(ip + 8);
		*to = address_v6(ip + 24);
		*protocol = ip[6];
		while ((*protocol == HOP_BY_HOP || *protocol == ROUTING || *protocol == OPTIONS) &&
		       header + 8 <= there) {
			*protocol = ip[header];
			header += (ip[header + 1] + 1u) * 8;
		}
	}
	return there >= header + QUOTED ? ip + header : NULL;
}

void icmp_take(struct nwa *a, const struct packet *p)
{
	struct address from, to;
	uint8_t protocol, path_direction;
	uint32_t path, value, flow, mtu = 0;
	const uint8_t *header;
	struct nwa_icmp_error *row;
	bool v6 = p->protocol == PROTOCOL_ICMPV6;

	if ((p->protocol != PROTOCOL_ICMP && !v6) || p->captured < ICMP_HEADER || !is_error(p))
		return;
	header = quoted(p, &from, &to, &protocol);
	if (!header || (protocol != PROTOCOL_TCP && protocol != PROTOCOL_SCTP))
		return;
	path = path_find(a, &from, &to, &path_direction);
	if (path == NWA_NONE)
		return;
	if (address_equal(&from, &to))
		path_direction = get_be16(header) > get_be16(header + 2);
	if (!map_get(protocol == PROTOCOL_TCP ? &a->tcp : &a->sctp,
		     flow_key(path, path_direction, get_be16(header), get_be16(header + 2)), &value))
		return;
	flow = value >> 1;
	if (v6 && p->data[0] == V6_TOO_BIG)
		mtu = get_be32(p->data + 4);
	else if (!v6 && p->data[0] == UNREACHABLE && p->data[1] == TOO_BIG)
		mtu = get_be16(p->data + 6);
	row = table_push(&a->tables[nwa_table_icmp_errors]);
	*row = (struct nwa_icmp_error){.time_ns = p->time_ns,
				       .flow = flow,
				       .packet = p->number,
				       .path = path,
				       .number = get_be32(header + 4),
				       .mtu = mtu,
				       .family = v6 ? 6 : 4,
				       .type = p->data[0],
				       .code = p->data[1],
				       .direction = (uint8_t)(path_direction ^ (value & 1))};
	address_store(row->source, &p->from);
}
