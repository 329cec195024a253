/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Capture filters in libpcap's language, evaluated by libpcap. The library is loaded only when a filter is
 * given, since it depends on many others.
 */
#ifndef ANALYZER_FILTER_H
#define ANALYZER_FILTER_H

#include "reader.h"

/* Load libpcap and keep the filter's text in a->filter. 0, or -1 with a->error set. */
int filter_start(struct nwa *a, const char *text);
/* Compile the filter for packets of this link type. 0, or -1 with a->error set. */
int filter_compile(struct nwa *a, uint16_t link_type);
/*
 * Whether the record passes the filter. a->filter must not be NULL. A link type not seen before is compiled
 * first; if that fails, a->error is set.
 */
bool filter_keeps(struct nwa *a, const struct record *r);
void filter_free(struct filter *f);

#endif
