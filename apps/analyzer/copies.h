/* Packets that the capture holds twice: seen at a mirror port in both directions, or before and after a
 * router. */
#ifndef ANALYZER_COPIES_H
#define ANALYZER_COPIES_H

#include "reader.h"

/* Whether this TCP or SCTP packet equals one of late, but for what a router changes. Remembers it otherwise.
 */
bool is_copy(struct nwa *a, const struct packet *p);

#endif
