/* The table `identities`: one row an IP packet, for joining captures of several points. */
#ifndef ANALYZER_IDENTITY_H
#define ANALYZER_IDENTITY_H

#include "reader.h"

/* Nothing unless the table is wanted and the packet is of IP. */
void identity_take(struct nwa *a, const struct packet *p, uint32_t flow, uint32_t path,
		   uint8_t path_direction);

#endif
