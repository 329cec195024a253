/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fills the table `identities`, one row per IP packet: with it captures of several points are joined
 * (captures/hop_joins.py).
 */
#ifndef ANALYZER_IDENTITY_H
#define ANALYZER_IDENTITY_H

#include "reader.h"

/* Add a row. Does nothing when the table is not wanted or the packet is not IP. */
void identity_take(struct nwa *a, const struct packet *p, uint32_t flow, uint32_t path,
		   uint8_t path_direction);

#endif
