/* Segments of TCP. */
#ifndef ANALYZER_TCP_H
#define ANALYZER_TCP_H

#include "reader.h"

/* Finds the segment's flow; what it carries goes into *f. */
void tcp_packet(struct nwa *a, const struct packet *p, uint32_t path, uint8_t path_direction,
		struct findings *f);

#endif
