/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent: what the agents on the forwarding path share: their settings, what they may do with a packet, what
 * they count, and the table of their connections. Pure: the main program carries out what they ask for.
 */
#ifndef NETWARP_AGENT_H
#define NETWARP_AGENT_H

#include "cache.h"

#define CONNECTIONS_MAX 64

struct ndjson;

/* Every count is of packets unless it says otherwise. */
struct agent_counts {
	uint64_t packets;	 /* that came from the queue */
	uint64_t passed;	 /* on, as they were or changed */
	uint64_t not_understood; /* among those passed: fragments, other protocols, malformed */
	uint64_t suppressed;	 /* held back for good; rules behind the queue count them, too */
	uint64_t changed;
	uint64_t retransmitted; /* by the agent, towards the mobile host */
	uint64_t by_duplicates; /* of those, because of duplicate acknowledgements */
	uint64_t by_timer;
	uint64_t on_return; /* of those, after the mobile host was away */
	uint64_t made;	    /* acknowledgements that the agent wrote itself, towards the sender */
	uint64_t uncached;  /* data that the cache had no room for */
	uint64_t frozen;    /* times: the sender was told a window of zero */
	uint64_t send_errors;
	uint64_t queue_overflows; /* times: the kernel could not hand packets to the agent */
};

struct agent {
	/* settings */
	size_t cache_packets;
	int64_t timeout_min_ns;
	unsigned int retransmissions_most;
	bool hide_sack;
	int64_t away_after_ns; /* mtcp */
	int64_t hold_ns;       /* mtcp */

	struct agent_counts counts;
	/* Send a packet that the agent made or kept, by the router's own routes. */
	void (*send)(struct agent *agent, const uint8_t *data, size_t len);
	/* Records an event: "retransmit", "frozen", ... of the byte `seq`. NULL: nobody asks.
	 */
	void (*event)(struct agent *agent, const char *what, const struct segment_ends *ends, uint32_t seq,
		      int64_t now_ns);
	void *context;
	uint8_t *connections; /* CONNECTIONS_MAX of the kind's own struct, each `connection_bytes` long */
	size_t connection_bytes;
};

enum agent_verdict {
	AGENT_PASS,
	AGENT_CHANGED, /* pass it on as it is now in the segment */
	AGENT_SUPPRESS,
};

enum agent_side { FROM_FIXED, FROM_MOBILE };

/* The functions of a kind of agent. */
struct agent_kind {
	int (*begin)(struct agent *agent); /* -1: no memory */
	enum agent_verdict (*packet)(struct agent *agent, enum agent_side side, struct segment *segment,
				     int64_t now_ns);
	int64_t (*next_ns)(const struct agent *agent); /* when `timer` wants to run; INT64_MAX: never */
	void (*timer)(struct agent *agent, int64_t now_ns);
	/* The link layer's word: the mobile host is gone (false) or there again (true). May be NULL. */
	void (*moved)(struct agent *agent, bool there, int64_t now_ns);
};

/* The part of a connection that every kind keeps: the first member of its own struct, all of which begins as
 * zeros. */
struct followed {
	bool used;
	struct segment_ends ends; /* of its data */
	int64_t touched_ns;
	struct cache cache;
	struct round_trip trip;
};

/* The table: made (-1: no memory), freed, and its i-th connection. */
int agent_begin(struct agent *agent, size_t connection_bytes);
void agent_end(struct agent *agent);
void *agent_at(const struct agent *agent, size_t i);

/*
 * The connection that a packet is of, made where it is data of a new one; `*data` says whether it is data for
 * the mobile host. NULL: the packet passes as it is: of no connection, or its first (SYN) or last (RST),
 * which begins or ends what is kept of one.
 */
void *agent_connection_of(struct agent *agent, enum agent_side side, const struct segment *segment,
			  bool *data);

bool agent_same_ends(const struct segment_ends *a, const struct segment_ends *b);

#endif
