/* SPDX-License-Identifier: Apache-2.0 */
/* sender_due: what a sender does at given times: stop, switches of the primary path, samples, stall checks.
 */
#ifndef NETWARP_SENDER_DUE_H
#define NETWARP_SENDER_DUE_H

#include "transport.h"

/* A timeline event of the same instant comes first (docs/formats.md). */
#define AFTER_TIMELINE_NS 1000

/* How a flow ended: the summary's `reason`. */
enum ending {
	NOT_ENDED,
	END_STOP,	 /* at --stop-ns */
	END_TOTAL,	 /* all payload was handed over */
	END_TERMINATED,	 /* SIGTERM or SIGINT */
	END_GAVE_UP,	 /* the transport has */
	END_STALLED,	 /* nothing was acknowledged for --stall-deadline-ns */
	END_PEER_CLOSED, /* too early */
	END_PEER_ABORTED,
	END_FAILED, /* flow_error() has reported it */
};

struct sender {
	struct flow flow;
	int64_t start_ns, stop_ns; /* CLOCK_MONOTONIC; stop_ns: WAIT_NEVER without --stop-ns */
	int64_t next_sample_ns, next_check_ns;
	unsigned int next_switch;
	bool sending;	    /* payload is being handed over: --stop-ns and the schedule count */
	bool drained;	    /* the peer has closed too */
	uint64_t due_bytes; /* that may be handed over now */
	int64_t blocked_ns; /* since when the kernel has no room for what is due; 0: it has */
	uint64_t acknowledged;
	int64_t progress_ns; /* when `acknowledged` was last seen to grow */
};

/* The connection is up since sender->progress_ns: when samples and checks are due. */
void sender_due_begin(struct sender *sender);
/* When sender_act() has something to do next, on CLOCK_MONOTONIC. */
int64_t sender_next_due(const struct sender *sender);
/* Do what is due at `now`. Returns how the flow has to end, or NOT_ENDED. */
enum ending sender_act(struct sender *sender, int64_t now);
/* The records `blocked` and `unblocked`: a schedule that the kernel holds up. */
void sender_record_blocked(struct sender *sender, bool blocked);

#endif
