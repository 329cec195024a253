/* SPDX-License-Identifier: Apache-2.0 */
/* Reads link-layer headers, from the first byte of a frame to the network layer. */
#ifndef ANALYZER_LINK_H
#define ANALYZER_LINK_H

#include "cursor.h"
#include "packet.h"

enum { LINK_ETHERNET = 1, ETHERNET_HEADER = 14 };
enum ethertype { TYPE_IPV4 = 0x0800, TYPE_ARP = 0x0806, TYPE_IPV6 = 0x86dd };

/*
 * Move the cursor behind every header below the network layer. Returns the EtherType of what follows; 0: it
 * is not decoded here.
 */
uint16_t link_payload(struct packet *p, struct cursor *c);
/*
 * The same, starting behind an EtherType of value `type`: VLAN tags, MPLS labels, PPPoE, PPP, whole
 * Ethernet frames.
 */
uint16_t link_behind(struct packet *p, struct cursor *c, uint16_t type);
/* The EtherType according to the IP version in the next byte. 0: neither 4 nor 6. */
uint16_t link_ip_type(const struct cursor *c);
/* Whether packets of this link type (pcap LINKTYPE_*) can be decoded. */
bool packet_link_known(uint16_t link_type);

#endif
