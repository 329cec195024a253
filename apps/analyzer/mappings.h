/* MPTCP: the data sequence numbers of what one end sent on one subflow. */
#ifndef ANALYZER_MAPPINGS_H
#define ANALYZER_MAPPINGS_H

#include <stdbool.h>
#include <stdint.h>

/* Subflow numbers [seq, end) are data numbers from dsn on. */
struct mapping {
	int64_t seq, end;
	uint64_t dsn;
};

/* Sorted and disjoint; adjoining ones that go on at both levels are one. */
struct mappings {
	struct mapping *list;
	uint32_t count, capacity;
	uint64_t last_dsn; /* of the mapping sent last: what a short one is nearest to */
};

/* Adds a mapping; *m is made when it is NULL. What was mapped before keeps its number (RFC 8684 3.3.1: a
 * mapping is not to be changed). false: no memory. */
bool mappings_add(struct mappings **m, const struct mapping *new);
/* The data sequence number of `seq`. */
bool mappings_find(const struct mappings *m, int64_t seq, uint64_t *dsn);
void mappings_free(struct mappings *m);

#endif
