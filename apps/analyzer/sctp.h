/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes SCTP packets: rows of chunks, SACKs, INITs and error causes. */
#ifndef ANALYZER_SCTP_H
#define ANALYZER_SCTP_H

#include "reader.h"

/* Find or create the packet's association, add the rows of its chunks, and fill *f. */
void sctp_packet(struct nwa *a, const struct packet *p, uint32_t path, uint8_t path_direction,
		 struct findings *f);

#endif
