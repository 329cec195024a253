/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the headers of tunnels: IP in IP, GRE, VXLAN, Geneve, GTP-U. */
#ifndef ANALYZER_TUNNEL_H
#define ANALYZER_TUNNEL_H

#include "cursor.h"
#include "packet.h"

/*
 * If `p`'s IP protocol or UDP destination port is that of a tunnel, move the cursor behind the tunnel's
 * header to the inner IP packet (also behind the Ethernet header where the tunnel carries frames). Returns
 * NWA_TUNNEL_*, with the EtherType of what follows in *type; 0: no tunnel.
 */
uint8_t tunnel_header(struct packet *p, struct cursor *c, uint16_t *type);

#endif
