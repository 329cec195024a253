/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schedule: the due time of each message. Without --interval-ns all messages are due at once (a saturated
 * flow).
 *
 * With an interval, burst k (k = 0, 1, ...) is due at first_ns + k * interval_ns, where first_ns is the
 * first instant "start + n * interval" at or after the moment the connection is established. Due times do
 * not depend on how much the kernel accepts (an open loop): a message that it does not accept yet stays
 * due. So the due time of message i follows from the record `schedule` alone, and measure computes message
 * delays from it.
 */
#ifndef NETWARP_SCHEDULE_H
#define NETWARP_SCHEDULE_H

#include "options.h"

#include <stdint.h>

struct config;
struct ndjson;

struct schedule {
	int64_t interval_ns;	  /* 0: no interval */
	int64_t first_ns;	  /* due time of burst 0, CLOCK_MONOTONIC */
	struct number_list sizes; /* bytes of each message of a burst, in order; every burst is the same */
	uint64_t burst_bytes;	  /* their sum */
};

void schedule_init(struct schedule *schedule, const struct config *config);
/* Set first_ns: the connection is established at `now`; `start_ns` is the sender's start time. */
void schedule_begin(struct schedule *schedule, int64_t start_ns, int64_t now);

/* Write the record `schedule`; nothing without an interval. */
void schedule_write(const struct schedule *schedule, struct ndjson *out);

/* Size in bytes of message number `message` (0, 1, ... of the flow), and of the largest message. */
uint64_t schedule_size(const struct schedule *schedule, uint64_t message);
uint64_t schedule_largest(const struct schedule *schedule);
/* Number of messages that begin within the first `bytes` bytes of the flow. */
uint64_t schedule_messages(const struct schedule *schedule, uint64_t bytes);

/*
 * Bytes of the flow that are due at `now`; the time at which the byte after the first `bytes` bytes is due.
 * Call them only with an interval.
 */
uint64_t schedule_due(const struct schedule *schedule, int64_t now);
int64_t schedule_next(const struct schedule *schedule, uint64_t bytes);

#endif
