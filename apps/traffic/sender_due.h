/* SPDX-License-Identifier: Apache-2.0 */
/* sender_due: what a sender does at given times: stop, switch the primary path, send heartbeats, take
 * samples, check for a stall, hand over payload that a schedule makes due. */
#ifndef NETWARP_SENDER_DUE_H
#define NETWARP_SENDER_DUE_H

#include "transport.h"

/* Apps act this much late, so that a timeline event at the same time happens first (docs/formats.md). */
#define AFTER_TIMELINE_NS 1000

/* The end of a flow: the summary's `reason`. */
enum ending {
	NOT_ENDED,
	END_STOP,	 /* at --stop-ns */
	END_TOTAL,	 /* all payload was handed over */
	END_TERMINATED,	 /* SIGTERM or SIGINT */
	END_GAVE_UP,	 /* the transport gave up: a timeout of TCP, an error threshold of SCTP */
	END_STALLED,	 /* nothing was acknowledged for --stall-deadline-ns */
	END_PEER_CLOSED, /* while payload is sent: too early; while draining: the good end */
	END_PEER_ABORTED,
	END_FAILED, /* flow_error() has reported it */
	END_DOWN,   /* waiter_down() */
};

struct sender {
	struct flow flow;
	int64_t start_ns, stop_ns; /* CLOCK_MONOTONIC; stop_ns: WAIT_NEVER without --stop-ns */
	int64_t next_sample_ns, next_check_ns;
	unsigned int next_switch;
	bool connecting;    /* from connect() until the connection is up */
	bool sending;	    /* true while payload is sent; only then do --stop-ns and the schedule apply */
	bool sent_all;	    /* no more payload comes, whatever the schedule says */
	bool drained;	    /* the peer has closed too */
	uint64_t due_bytes; /* total bytes that the schedule allows to have been sent by now */
	int64_t blocked_ns; /* when the socket buffer became full for what is due; 0: it is not full */
	uint64_t acknowledged;
	uint64_t before_bytes, before_messages; /* of connections that were lost */
	int64_t connect_ns;			/* when the connection there is was asked for */
	int64_t progress_ns;			/* when `acknowledged` was last seen to grow */
};

/* Call once connected, with progress_ns set to that time: schedules the first sample and the first stall
 * check, and makes the address of --primary primary, with the record `switch_primary`. */
void sender_due_begin(struct sender *sender);
/* The time of sender_act()'s next work, on CLOCK_MONOTONIC. */
int64_t sender_next_due(const struct sender *sender);
/* Does what is due at `now`, with the records `sample`, `switch_primary` and `heartbeat`. Returns how the
 * flow has to end, or NOT_ENDED. */
enum ending sender_act(struct sender *sender, int64_t now);
/* Writes the record `blocked` when the socket buffer has become full for what the schedule makes due, and
 * `unblocked` when it has room again. */
void sender_record_blocked(struct sender *sender, bool blocked);

#endif
