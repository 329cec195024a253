// SPDX-License-Identifier: Apache-2.0
/*
 * What this does: snoop.h. The cases of data and of acknowledgements are the paper's; the timeout is srtt +
 * 4 rttvar of the last hop and doubles with every expiry; a new acknowledgement takes that back once there is
 * a sample (docs/agents.md).
 */
#include "snoop.h"

#include "agent.h"

struct connection {
	struct followed all;
	bool sent, acknowledged; /* whether `next_seq`, `last_ack` are known */
	uint32_t next_seq;	 /* behind the highest byte that the sender has sent */
	uint32_t last_ack;	 /* the highest that the mobile host has sent */
	uint16_t window;	 /* of its last acknowledgement */
	unsigned int duplicates, expected;
	int64_t timeout_ns;		/* of the timer; doubled when it expires, 0: to be computed */
	int64_t expires_ns;		/* 0: it does not run */
	uint8_t bare[SEGMENT_BARE_MAX]; /* the mobile host's last acknowledgement */
	size_t bare_len;
};

static int snoop_begin(struct agent *agent)
{
	return agent_begin(agent, sizeof(struct connection));
}

/* The timer begins anew: it runs for the first segment that is not acknowledged. */
static void arm(const struct agent *agent, struct connection *connection, int64_t now_ns)
{
	const struct cached *first = connection->all.cache.items;

	if (!connection->all.cache.count || first->retransmissions >= agent->retransmissions_most) {
		connection->expires_ns = 0;
		return;
	}
	if (!connection->timeout_ns)
		connection->timeout_ns = round_trip_timeout(&connection->all.trip, agent->timeout_min_ns);
	connection->expires_ns = now_ns + connection->timeout_ns;
}

static void retransmit(struct agent *agent, struct connection *connection, struct cached *item,
		       int64_t now_ns)
{
	/* each segment behind it can raise one more duplicate acknowledgement, which then is no news */
	connection->duplicates = 0;
	connection->expected =
	    (unsigned int)(connection->all.cache.count - 1 - (size_t)(item - connection->all.cache.items));
	agent->counts.retransmitted++;
	item->retransmissions++;
	item->sent_ns = now_ns;
	agent->send(agent, item->data, item->len);
	if (agent->event)
		agent->event(agent, "retransmit", &connection->all.ends, item->seq, now_ns);
}

static enum agent_verdict data(struct agent *agent, struct connection *connection, struct segment *segment,
			       int64_t now_ns)
{
	uint32_t end = segment_end(segment);
	bool again = connection->sent && seq_before(segment->seq, connection->next_seq);
	struct cached *item;

	if (again && connection->acknowledged && !seq_before(connection->last_ack, end)) {
		/* the mobile host has it: its acknowledgement may have been lost on the way to the sender */
		agent->counts.made++;
		agent->send(agent, connection->bare, connection->bare_len);
		return AGENT_SUPPRESS;
	}
	item = cache_put(&connection->all.cache, segment);
	if (item) {
		/* sent again by the sender: it counts duplicate acknowledgements for it, so they must reach
		 * it */
		item->by_sender = again;
		item->retransmissions = 0;
		item->sent_ns = now_ns;
	} else {
		agent->counts.uncached++;
	}
	if (!connection->sent || seq_before(connection->next_seq, end))
		connection->next_seq = end;
	connection->sent = true;
	if (!connection->expires_ns || item == connection->all.cache.items)
		arm(agent, connection, now_ns);
	return AGENT_PASS;
}

static enum agent_verdict new_acknowledgement(struct agent *agent, struct connection *connection,
					      struct segment *segment, int64_t now_ns)
{
	int64_t sent_ns;

	cache_acknowledge(&connection->all.cache, segment->ack, &sent_ns);
	if (sent_ns != NO_TIME && !connection->duplicates)
		round_trip_sample(&connection->all.trip, now_ns - sent_ns);
	/* Before the first sample a doubled timeout stays (Karn and Partridge 1987): else a last hop slower
	 * than it has every segment sent again, and so never a sample. Later, where many are lost, samples
	 * are rare. */
	if (connection->all.trip.smoothed_ns)
		connection->timeout_ns = 0;
	connection->last_ack = segment->ack;
	connection->acknowledged = true;
	connection->duplicates = connection->expected = 0;
	if (connection->all.cache.count && connection->all.cache.items->sent_ns < now_ns && segment->sack &&
	    agent->hide_sack) {
		/* what the blocks say is missing is here, and mended from here */
		segment_hide_sack(segment);
		arm(agent, connection, now_ns);
		return AGENT_CHANGED;
	}
	arm(agent, connection, now_ns);
	return AGENT_PASS;
}

static enum agent_verdict duplicate(struct agent *agent, struct connection *connection,
				    const struct segment *segment, int64_t now_ns)
{
	struct cached *item = cache_at(&connection->all.cache, connection->last_ack);

	if (segment->duplicate_sack && !segment->missing)
		/* of what was sent twice from here: no news for the sender, and no loss */
		return AGENT_SUPPRESS;
	if (!item || item->by_sender || item->retransmissions >= agent->retransmissions_most)
		return AGENT_PASS;
	/* more of them than that: what was sent after the retransmission arrived before it. One that a
	 * segment raised which was there already is none of those. */
	if (!item->retransmissions ||
	    (!segment->duplicate_sack && connection->duplicates >= connection->expected)) {
		agent->counts.by_duplicates++;
		retransmit(agent, connection, item, now_ns);
		arm(agent, connection, now_ns);
	}
	connection->duplicates += !segment->duplicate_sack;
	return AGENT_SUPPRESS;
}

static enum agent_verdict acknowledgement(struct agent *agent, struct connection *connection,
					  struct segment *segment, int64_t now_ns)
{
	bool update = segment->window != connection->window && !segment->sack;
	enum agent_verdict verdict = AGENT_PASS;

	if (!connection->acknowledged || seq_before(connection->last_ack, segment->ack)) {
		verdict = new_acknowledgement(agent, connection, segment, now_ns);
	} else if (segment->payload || segment->flags & (SEGMENT_SYN | SEGMENT_FIN)) {
		return AGENT_PASS;
	} else if (seq_before(segment->ack, connection->last_ack)) {
		return AGENT_SUPPRESS;
	} else if (!update) {
		return duplicate(agent, connection, segment, now_ns);
	}
	connection->window = segment->window;
	connection->bare_len = segment_bare(segment, connection->bare);
	return verdict;
}

static enum agent_verdict snoop_packet(struct agent *agent, enum agent_side side, struct segment *segment,
				       int64_t now_ns)
{
	bool data_comes;
	struct connection *connection = agent_connection_of(agent, side, segment, &data_comes);

	if (!connection)
		return AGENT_PASS;
	connection->all.touched_ns = now_ns;
	if (data_comes)
		return data(agent, connection, segment, now_ns);
	if (side == FROM_MOBILE && segment->flags & SEGMENT_ACK)
		return acknowledgement(agent, connection, segment, now_ns);
	return AGENT_PASS;
}

static int64_t snoop_next_ns(const struct agent *agent)
{
	const struct connection *connection;
	int64_t next = INT64_MAX;
	size_t i;

	for (i = 0; i < CONNECTIONS_MAX; i++) {
		connection = agent_at(agent, i);
		if (connection->expires_ns && connection->expires_ns < next)
			next = connection->expires_ns;
	}
	return next;
}

static void snoop_timer(struct agent *agent, int64_t now_ns)
{
	struct connection *connection;
	size_t i;

	for (i = 0; i < CONNECTIONS_MAX; i++) {
		connection = agent_at(agent, i);
		if (!connection->expires_ns || connection->expires_ns > now_ns)
			continue;
		agent->counts.by_timer++;
		retransmit(agent, connection, connection->all.cache.items, now_ns);
		connection->timeout_ns *= 2;
		arm(agent, connection, now_ns);
	}
}

const struct agent_kind snoop_kind = {
    .begin = snoop_begin,
    .packet = snoop_packet,
    .next_ns = snoop_next_ns,
    .timer = snoop_timer,
};
