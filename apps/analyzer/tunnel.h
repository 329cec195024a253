/* Headers of tunnels: IP in IP, GRE, VXLAN, Geneve, GTP-U. */
#ifndef ANALYZER_TUNNEL_H
#define ANALYZER_TUNNEL_H

#include "cursor.h"
#include "packet.h"

/*
 * Takes the header of the tunnel that `p`'s protocol, or its UDP port, stands for, up to the IP packet within
 * (behind an Ethernet header, where the tunnel carries frames). Returns NWA_TUNNEL_* and the EtherType of
 * what follows; 0: no tunnel.
 */
uint8_t tunnel_header(struct packet *p, struct cursor *c, uint16_t *type);

#endif
