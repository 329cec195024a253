/* SPDX-License-Identifier: Apache-2.0 */
/* ICMP errors about packets of flows: table icmp_errors. */
#ifndef ANALYZER_ICMP_H
#define ANALYZER_ICMP_H

#include "reader.h"

/* Take an ICMP or ICMPv6 packet: an error that quotes a packet of a flow is a row. */
void icmp_take(struct nwa *a, const struct packet *p);

#endif
