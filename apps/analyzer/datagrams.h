/* SPDX-License-Identifier: Apache-2.0 */
/* Fills the table `datagrams`, one row per whole datagram of UDP that carries no flow: with it the loss and
 * delay of netwarp's own UDP are measured (measure/datagram_flows.py). */
#ifndef ANALYZER_DATAGRAMS_H
#define ANALYZER_DATAGRAMS_H

#include "reader.h"

/* Add a row. Does nothing when the table is not wanted or the packet is not UDP. */
void datagram_take(struct nwa *a, const struct packet *p, uint32_t path, uint8_t path_direction);

#endif
