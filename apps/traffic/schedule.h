/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schedule: when which message is due. Without an interval everything is due at once (a saturated flow).
 *
 * With one, burst k (k = 0, 1, ...) is due at first_ns + k * interval_ns, where first_ns is the first instant
 * of the grid "start + n * interval" that is not before the connection is up. Due times do not depend on what
 * the kernel takes (an open loop): what it refuses stays due, so that the due time of message number i is
 * known without a record of each.
 */
#ifndef NETWARP_SCHEDULE_H
#define NETWARP_SCHEDULE_H

#include "options.h"

#include <stdint.h>

struct config;
struct ndjson;

struct schedule {
	int64_t interval_ns; /* 0: none */
	int64_t first_ns;
	struct number_list sizes; /* of the messages of a burst, in order; they repeat */
	uint64_t burst_bytes;	  /* their sum */
};

void schedule_init(struct schedule *schedule, const struct config *config);
/* The connection is up at `now`; `start_ns` is the origin of the grid. */
void schedule_begin(struct schedule *schedule, int64_t start_ns, int64_t now);

/* The record `schedule`; none without an interval. */
void schedule_write(const struct schedule *schedule, struct ndjson *out);

/* Bytes of message number `message` (0, 1, ... of the flow), and of the largest one. */
uint64_t schedule_size(const struct schedule *schedule, uint64_t message);
uint64_t schedule_largest(const struct schedule *schedule);
/* How many messages begin within the first `bytes` bytes of the flow. */
uint64_t schedule_messages(const struct schedule *schedule, uint64_t bytes);

/* How many bytes are due at `now`, and when those after the first `bytes` are: both only with an interval. */
uint64_t schedule_due(const struct schedule *schedule, int64_t now);
int64_t schedule_next(const struct schedule *schedule, uint64_t bytes);

#endif
