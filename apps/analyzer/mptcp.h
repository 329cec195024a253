/* MPTCP options of TCP segments. */
#ifndef ANALYZER_MPTCP_H
#define ANALYZER_MPTCP_H

#include "reader.h"

/* Where MPTCP options were found. */
struct mptcp_place {
	uint32_t flow, path;
	uint8_t direction;
};
/* Whether an MPTCP option (of 3 bytes or more) is worth a row. */
bool mptcp_has_row(const uint8_t *at, uint8_t length);
/* A row for each of a segment's options that is. */
void mptcp_options(struct nwa *a, const struct packet *p, const struct mptcp_place *place, const uint8_t *at,
		   uint32_t bytes);

#endif
