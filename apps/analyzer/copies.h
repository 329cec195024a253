/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recognises packets that a capture holds several times: captured at a mirror port in both directions, before
 * and after a router, or at several interfaces of one host.
 */
#ifndef ANALYZER_COPIES_H
#define ANALYZER_COPIES_H

#include "reader.h"

/*
 * Whether this TCP or SCTP packet equals a recent one (NWA_MARK_COPY) except for the fields that a router
 * changes. If not, remembers it.
 */
bool is_copy(struct nwa *a, const struct packet *p);

#endif
