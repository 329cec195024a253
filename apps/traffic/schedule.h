/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schedule: the messages of one direction of a flow: their sizes, streams and due times. Three kinds:
 *
 * Without --interval-ns and --messages all messages are due at once (a saturated flow).
 *
 * With an interval, burst k (k = 0, 1, ...) is due at first_ns + k * interval_ns, where first_ns is the
 * first instant "start + n * interval" at or after the moment the connection is established.
 *
 * With a file (--messages, message_list.h) each message is due at its own time from the start; messages that
 * are due before the connection is up are left out (`due`) or sent once it is up (`all`). Or each message is
 * due some time after one of the peer's has arrived (`answers`: of the same number; `asks`: of the number
 * before, and the first at once).
 *
 * Due times do not depend on how much the kernel accepts (an open loop): a message that it does not accept
 * yet stays due. So the due time of message i follows from the record `schedule`, the file, and the arrivals
 * at this end, and measure computes message delays from them.
 */
#ifndef NETWARP_SCHEDULE_H
#define NETWARP_SCHEDULE_H

#include "message_list.h"
#include "options.h"

#include <stdint.h>

struct config;
struct ndjson;

struct schedule {
	int64_t interval_ns;	  /* 0: no interval */
	int64_t first_ns;	  /* due time of burst 0, CLOCK_MONOTONIC */
	struct number_list sizes; /* bytes of each message of a burst, in order; every burst is the same */
	uint64_t burst_bytes;	  /* their sum */
	uint64_t streams;	  /* messages go round robin over that many */
	struct message_list list; /* of --messages; its times become due times */
	uint64_t known;		  /* list: messages whose due time is known */
	uint64_t left_out;	  /* list: due before the connection was up */
	uint64_t due;		  /* list: messages that were due when schedule_due() was called last */
};

/* 0, or -1 with `reason` filled in: --messages cannot be read. */
int schedule_init(struct schedule *schedule, const struct config *config, char *reason, size_t size);
void schedule_free(struct schedule *schedule);
/* Set the due times: the connection is established at `now`; `start_ns` is the flow's start time. */
void schedule_begin(struct schedule *schedule, int64_t start_ns, int64_t now);
/* So many of the peer's messages have arrived whole, the last of them at `now`. */
void schedule_peer(struct schedule *schedule, uint64_t messages, int64_t now);

/* Write the record `schedule`; nothing for a saturated flow. */
void schedule_write(const struct schedule *schedule, struct ndjson *out);

/* False: all messages are due at once. */
bool schedule_timed(const struct schedule *schedule);
/* Whether due times follow from the peer's messages. */
bool schedule_waits(const struct schedule *schedule);

/* Size in bytes of message number `message` (0, 1, ... of the flow), and of the largest message. */
uint64_t schedule_size(const struct schedule *schedule, uint64_t message);
uint64_t schedule_largest(const struct schedule *schedule);
/* Its stream, and its number within that stream. */
uint16_t schedule_stream(const struct schedule *schedule, uint64_t message);
uint64_t schedule_number(const struct schedule *schedule, uint64_t message);
/* Number of messages that begin within the first `bytes` bytes of the flow. */
uint64_t schedule_messages(const struct schedule *schedule, uint64_t bytes);

/*
 * Bytes of the flow that are due at `now`; the time at which the byte after the first `bytes` bytes is due
 * (INT64_MAX: not known yet, or never). Call them only with a timed schedule.
 */
uint64_t schedule_due(struct schedule *schedule, int64_t now);
int64_t schedule_next(const struct schedule *schedule, uint64_t bytes);

#endif
