/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the MPTCP options of TCP segments into the table `mptcp_options`. */
#ifndef ANALYZER_MPTCP_H
#define ANALYZER_MPTCP_H

#include "reader.h"

/* The segment's flow (subflow), path and direction. */
struct mptcp_place {
	uint32_t flow, path;
	uint8_t direction;
};
/* Whether an MPTCP option of `length` bytes (at least 3) gets a row: all do except DSS without DATA_FIN. */
bool mptcp_has_row(const uint8_t *at, uint8_t length);
/* Add the rows of a segment's options. `at`, `bytes`: all its TCP options. */
void mptcp_options(struct nwa *a, const struct packet *p, const struct mptcp_place *place, const uint8_t *at,
		   uint32_t bytes);

#endif
