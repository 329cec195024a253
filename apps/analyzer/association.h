/* SCTP: the association that a packet belongs to. */
#ifndef ANALYZER_ASSOCIATION_H
#define ANALYZER_ASSOCIATION_H

#include "reader.h"

/* SCTP: the association a packet belongs to and its direction in it. NULL: no memory. */
struct association_hint {
	uint16_t from, to;
	uint32_t tag;	    /* of the common header */
	uint8_t first_type; /* of the first chunk */
	uint8_t first_flags;
	bool has_init_tag;
	uint32_t init_tag; /* INIT, INIT-ACK: the sender's own tag */
	uint32_t initial_tsn;
	bool has_tsn; /* DATA, SACK */
	uint32_t tsn; /* of DATA its own, of SACK the other direction's that it acknowledges */
};
struct flow *association_of(struct nwa *a, const struct packet *p, uint32_t path, uint8_t path_direction,
			    const struct association_hint *hint, uint8_t *direction);

#endif
