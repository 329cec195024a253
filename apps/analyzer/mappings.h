/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MPTCP mappings from subflow sequence numbers to data sequence numbers (DSS option), of one direction of a
 * subflow.
 */
#ifndef ANALYZER_MAPPINGS_H
#define ANALYZER_MAPPINGS_H

#include <stdbool.h>
#include <stdint.h>

/* Subflow sequence numbers [seq, end) carry the data sequence numbers dsn, dsn + 1, ... */
struct mapping {
	int64_t seq, end;
	uint64_t dsn;
};

/* Sorted and disjoint. Neighbours that continue each other at both levels are merged into one. */
struct mappings {
	struct mapping *list;
	uint32_t count, capacity;
	uint64_t last_dsn; /* of the latest mapping: a 32-bit number is completed to the nearest 64-bit one */
};

/*
 * Add a mapping; allocates *m when it is NULL. Bytes that are already mapped keep their number (RFC 8684
 * 3.3.1 forbids changing a mapping). false: no memory.
 */
bool mappings_add(struct mappings **m, const struct mapping *new);
/* The data sequence number of subflow number `seq` in *dsn. false: it is not mapped. `m` may be NULL. */
bool mappings_find(const struct mappings *m, int64_t seq, uint64_t *dsn);
void mappings_free(struct mappings *m);

#endif
