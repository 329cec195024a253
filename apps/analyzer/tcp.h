/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes TCP segments: rows of segments, SACK blocks and MPTCP options. */
#ifndef ANALYZER_TCP_H
#define ANALYZER_TCP_H

#include "reader.h"

/* Find or create the segment's connection, add its rows, and fill *f. */
void tcp_packet(struct nwa *a, const struct packet *p, uint32_t path, uint8_t path_direction,
		struct findings *f);

#endif
