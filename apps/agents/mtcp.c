// SPDX-License-Identifier: Apache-2.0
/*
 * What this does: mtcp.h. While the mobile host is there, its acknowledgements pass without their last byte;
 * that byte is acknowledged with a window of zero when it is away, so that the sender takes it for news
 * (RFC 9293, 3.10.7.4: an older or equal acknowledgement would not close the window). docs/agents.md tells
 * the rest.
 */
#include "mtcp.h"

#include "agent.h"

#define FIRST_BURST 10 /* segments sent again at once on return: as TCP begins (RFC 6928) */
#define PROBE_MAX   (INT64_C(4) * 1000000000)

struct connection {
	struct followed all;
	bool acknowledged; /* whether `last_ack` and `bare` are known */
	uint32_t last_ack; /* the mobile host's, with the last byte */
	uint32_t next_seq; /* behind the highest byte that the sender has sent */
	bool holding;	   /* the sender has not been told of the last byte */
	bool away;
	int64_t heard_ns;      /* the mobile host, or when there was something to wait for again */
	int64_t returned_ns;   /* segments sent before that were lost with the handover; 0: none */
	bool waiting;	       /* some of the cache is still to be sent, and what is new goes behind it */
	bool probed;	       /* since it is away */
	size_t burst;	       /* segments that may be under way while they are sent again */
	int64_t probe_ns;      /* when the first segment is tried again while it is away */
	int64_t probe_wait_ns; /* and how long after that once more */
	uint8_t bare[SEGMENT_BARE_MAX]; /* the mobile host's last acknowledgement */
	size_t bare_len;
};

static int mtcp_begin(struct agent *agent)
{
	return agent_begin(agent, sizeof(struct connection));
}

static void event(struct agent *agent, const struct connection *connection, const char *what, uint32_t seq,
		  int64_t now_ns)
{
	if (agent->event)
		agent->event(agent, what, &connection->all.ends, seq, now_ns);
}

/* The mobile host's last acknowledgement, whole, with its own window or with none. */
static void tell(struct agent *agent, struct connection *connection, bool open)
{
	uint8_t data[SEGMENT_BARE_MAX];
	struct segment segment;
	size_t i;

	for (i = 0; i < connection->bare_len; i++)
		data[i] = connection->bare[i];
	if (!segment_read(data, connection->bare_len, &segment))
		return;
	if (!open)
		segment_set_window(&segment, 0);
	connection->holding = false;
	agent->counts.made++;
	agent->send(agent, data, segment.len);
}

/* The longest silence of the mobile host while something is on the way to it. */
static int64_t patience_ns(const struct agent *agent, const struct connection *connection)
{
	return round_trip_timeout(&connection->all.trip, agent->away_after_ns);
}

static void send_again(struct agent *agent, struct connection *connection, struct cached *item,
		       int64_t now_ns)
{
	/* what was held back for want of a mobile host leaves for the first time */
	if (item->held) {
		item->held = false;
	} else {
		item->retransmissions++;
		agent->counts.on_return++;
		event(agent, connection, "retransmit", item->seq, now_ns);
	}
	agent->counts.retransmitted++;
	item->sent_ns = now_ns;
	agent->send(agent, item->data, item->len);
}

static bool waits(const struct connection *connection, const struct cached *item)
{
	return item->held || (item->sent_ns < connection->returned_ns);
}

/* Send in order what waits, as much as may be under way. */
static void send_waiting(struct agent *agent, struct connection *connection, int64_t now_ns)
{
	size_t i, under_way = 0;

	connection->waiting = true;
	for (i = 0; i < connection->all.cache.count; i++)
		under_way += !waits(connection, &connection->all.cache.items[i]);
	for (i = 0; i < connection->all.cache.count; i++) {
		if (!waits(connection, &connection->all.cache.items[i]))
			continue;
		if (under_way >= connection->burst)
			return;
		send_again(agent, connection, &connection->all.cache.items[i], now_ns);
		under_way++;
	}
	connection->returned_ns = 0;
	connection->waiting = false;
}

static void leave(struct agent *agent, struct connection *connection, int64_t now_ns)
{
	if (connection->away || !connection->acknowledged)
		return;
	connection->away = true;
	connection->probed = false;
	connection->probe_wait_ns = patience_ns(agent, connection);
	connection->probe_ns = now_ns + connection->probe_wait_ns;
	agent->counts.frozen++;
	event(agent, connection, "freeze", connection->last_ack, now_ns);
	tell(agent, connection, false);
}

/* lost: what was under way when it left. A mobile host that acknowledges unasked was not away at all. */
static void come_back(struct agent *agent, struct connection *connection, bool lost, int64_t now_ns)
{
	if (connection->away) {
		connection->away = false;
		event(agent, connection, "thaw", connection->last_ack, now_ns);
		tell(agent, connection, true);
	}
	connection->heard_ns = now_ns;
	connection->burst = FIRST_BURST;
	if (lost)
		connection->returned_ns = now_ns;
	else
		connection->burst += connection->all.cache.count;
	send_waiting(agent, connection, now_ns);
}

static enum agent_verdict data(struct agent *agent, struct connection *connection, struct segment *segment,
			       int64_t now_ns)
{
	uint32_t end = segment_end(segment);
	bool first = connection->all.cache.count == 0, again = false;
	struct cached *item;

	if (connection->all.touched_ns)
		again = seq_before(segment->seq, connection->next_seq);
	if (!connection->all.touched_ns || seq_before(connection->next_seq, end))
		connection->next_seq = end;
	if (connection->acknowledged && !seq_before(connection->last_ack, end)) {
		/* the mobile host has it; the sender may be waiting for the byte held back */
		tell(agent, connection, !connection->away);
		return AGENT_SUPPRESS;
	}
	item = cache_put(&connection->all.cache, segment);
	if (!item) {
		agent->counts.uncached++;
		return AGENT_PASS;
	}
	item->by_sender |= again;
	if (connection->away || connection->waiting) {
		item->held = true; /* behind what waits already */
		if (connection->away && again)
			tell(agent, connection,
			     false); /* a probe, or a timeout: the window is still closed */
		return AGENT_SUPPRESS;
	}
	item->sent_ns = now_ns;
	if (first)
		connection->heard_ns = now_ns;
	return AGENT_PASS;
}

static enum agent_verdict acknowledgement(struct agent *agent, struct connection *connection,
					  struct segment *segment, int64_t now_ns)
{
	bool returned = connection->away, fresh = !connection->acknowledged;
	bool of_data = connection->all.touched_ns && !seq_before(connection->next_seq, segment->ack);
	int64_t sent_ns;
	size_t freed;

	if (!fresh && seq_before(segment->ack, connection->last_ack))
		return AGENT_PASS; /* overtaken by another */
	freed = cache_acknowledge(&connection->all.cache, segment->ack, &sent_ns);
	if (sent_ns != NO_TIME)
		round_trip_sample(&connection->all.trip, now_ns - sent_ns);
	if (freed || fresh)
		connection->holding = freed && of_data;
	connection->last_ack = segment->ack;
	connection->acknowledged = true;
	connection->heard_ns = now_ns;
	connection->bare_len = segment_bare(segment, connection->bare);
	if (returned)
		come_back(agent, connection, connection->probed, now_ns); /* tells the sender all of it */
	connection->burst += freed;
	if (connection->waiting)
		send_waiting(agent, connection, now_ns);
	if (!connection->holding)
		return AGENT_PASS;
	segment_set_ack(segment, segment->ack - 1);
	return AGENT_CHANGED;
}

static enum agent_verdict mtcp_packet(struct agent *agent, enum agent_side side, struct segment *segment,
				      int64_t now_ns)
{
	bool data_comes;
	struct connection *connection = agent_connection_of(agent, side, segment, &data_comes);
	enum agent_verdict verdict = AGENT_PASS;

	if (!connection)
		return AGENT_PASS;
	if (data_comes) {
		verdict = data(agent, connection, segment, now_ns);
	} else if (side == FROM_FIXED && connection->away) {
		tell(agent, connection, false); /* a probe of the closed window */
		verdict = AGENT_SUPPRESS;
	} else if (side == FROM_MOBILE && segment->flags & SEGMENT_ACK) {
		verdict = acknowledgement(agent, connection, segment, now_ns);
	}
	connection->all.touched_ns = now_ns;
	return verdict;
}

/* The time of the connection's next work; INT64_MAX: none. */
static int64_t due_ns(const struct agent *agent, const struct connection *connection)
{
	if (!connection->all.used)
		return INT64_MAX;
	if (connection->away)
		return connection->all.cache.count ? connection->probe_ns : INT64_MAX;
	if (connection->all.cache.count && connection->acknowledged)
		return connection->heard_ns + patience_ns(agent, connection);
	return connection->holding ? connection->heard_ns + agent->hold_ns : INT64_MAX;
}

static int64_t mtcp_next_ns(const struct agent *agent)
{
	int64_t next = INT64_MAX, due;
	size_t i;

	for (i = 0; i < CONNECTIONS_MAX; i++) {
		due = due_ns(agent, agent_at(agent, i));
		if (due < next)
			next = due;
	}
	return next;
}

static void mtcp_timer(struct agent *agent, int64_t now_ns)
{
	struct connection *connection;
	size_t i;

	for (i = 0; i < CONNECTIONS_MAX; i++) {
		connection = agent_at(agent, i);
		if (due_ns(agent, connection) > now_ns)
			continue;
		if (connection->away) {
			agent->counts.by_timer++;
			connection->probed = true;
			send_again(agent, connection, connection->all.cache.items, now_ns);
			connection->probe_wait_ns *= 2;
			if (connection->probe_wait_ns > PROBE_MAX)
				connection->probe_wait_ns = PROBE_MAX;
			connection->probe_ns = now_ns + connection->probe_wait_ns;
		} else if (connection->all.cache.count) {
			leave(agent, connection, now_ns);
		} else {
			tell(agent, connection, true); /* all is there: nothing to hold back any longer */
		}
	}
}

static void mtcp_moved(struct agent *agent, bool there, int64_t now_ns)
{
	struct connection *connection;
	size_t i;

	for (i = 0; i < CONNECTIONS_MAX; i++) {
		connection = agent_at(agent, i);
		if (!connection->acknowledged)
			continue;
		if (there)
			come_back(agent, connection, true, now_ns);
		else
			leave(agent, connection, now_ns);
	}
}

const struct agent_kind mtcp_kind = {
    .begin = mtcp_begin,
    .packet = mtcp_packet,
    .next_ns = mtcp_next_ns,
    .timer = mtcp_timer,
    .moved = mtcp_moved,
};
