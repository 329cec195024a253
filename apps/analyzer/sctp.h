/* Packets of SCTP. */
#ifndef ANALYZER_SCTP_H
#define ANALYZER_SCTP_H

#include "reader.h"

/* Finds the packet's flow; what it carries goes into *f. */
void sctp_packet(struct nwa *a, const struct packet *p, uint32_t path, uint8_t path_direction,
		 struct findings *f);

#endif
