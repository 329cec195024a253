/* SPDX-License-Identifier: Apache-2.0 */
/* Assigns SCTP packets to associations, by ports and verification tag (RFC 9260 8.5); how: association.c. */
#ifndef ANALYZER_ASSOCIATION_H
#define ANALYZER_ASSOCIATION_H

#include "reader.h"

/* The fields of a packet for association_of(): filled by sctp.c from the common header and the first chunk.
 */
struct association_hint {
	uint16_t from, to;
	uint32_t tag;	    /* of the common header */
	uint8_t first_type; /* of the first chunk */
	uint8_t first_flags;
	bool has_init_tag;
	uint32_t init_tag; /* INIT, INIT-ACK: the tag that its sender has chosen */
	uint32_t initial_tsn;
	bool has_tsn; /* DATA, SACK */
	uint32_t tsn; /* DATA: its TSN; SACK: the cumulative TSN, a number of the other direction */
};
/*
 * The packet's association, a new one if none fits, and *direction: the packet's direction in it. NULL: no
 * memory.
 */
struct flow *association_of(struct nwa *a, const struct packet *p, uint32_t path, uint8_t path_direction,
			    const struct association_hint *hint, uint8_t *direction);

/* See nwa_join(). */
bool association_join(struct nwa *a, const struct tag_pair *pair);

#endif
