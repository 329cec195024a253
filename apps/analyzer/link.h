/* Link layers, from the first byte of a frame to the network layer. */
#ifndef ANALYZER_LINK_H
#define ANALYZER_LINK_H

#include "cursor.h"
#include "packet.h"

enum { LINK_ETHERNET = 1, ETHERNET_HEADER = 14 };
enum ethertype { TYPE_IPV4 = 0x0800, TYPE_ARP = 0x0806, TYPE_IPV6 = 0x86dd };

/* Takes every header below the network layer. Returns the EtherType of what follows; 0: nothing that is read.
 */
uint16_t link_payload(struct packet *p, struct cursor *c);
/* The same from behind an EtherType on: VLAN tags, MPLS labels, PPPoE, PPP, whole Ethernet frames. */
uint16_t link_behind(struct packet *p, struct cursor *c, uint16_t type);
/* The EtherType by the IP version. 0: neither. */
uint16_t link_ip_type(const struct cursor *c);
/* Whether packets of this link type can be read at all. */
bool packet_link_known(uint16_t link_type);

#endif
