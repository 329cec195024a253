/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fills the table `quic`: what the headers of QUIC packets show to everybody, without keys (RFC 8999, RFC
 * 9000 17, RFC 9369). One datagram may hold several packets (RFC 9000 12.2).
 *
 * Every datagram of UDP is read as if it were QUIC; who knows the port of a flow takes its rows.
 */
#ifndef ANALYZER_QUIC_H
#define ANALYZER_QUIC_H

#include "reader.h"

/* Add the rows of a whole datagram. Does nothing when the table is not wanted or the packet is not UDP. */
void quic_take(struct nwa *a, const struct packet *p, uint32_t path, uint8_t path_direction);

#endif
