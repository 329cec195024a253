/* A filter in libpcap's language, by libpcap: loaded only when there is a filter (its own libraries are
 * many). */
#ifndef ANALYZER_FILTER_H
#define ANALYZER_FILTER_H

#include "reader.h"

/* -1: see the reader's error. */
int filter_start(struct nwa *a, const char *text);
/* Compiles the filter for packets of this link type. -1: see the reader's error. */
int filter_compile(struct nwa *a, uint16_t link_type);
/* Whether the filter (there is one) lets this record through. */
bool filter_keeps(struct nwa *a, const struct record *r);
void filter_free(struct filter *f);

#endif
