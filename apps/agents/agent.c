// SPDX-License-Identifier: Apache-2.0
/* Documented in agent.h. */
#include "agent.h"

#include <stdlib.h>
#include <string.h>

/* The ends of the connection as its data segments name them: from the fixed host to the mobile. */
static struct segment_ends ends_of(enum agent_side side, const struct segment *segment)
{
	const struct segment_ends *ends = &segment->ends;

	if (side == FROM_FIXED)
		return *ends;
	return (struct segment_ends){ends->destination, ends->source, ends->destination_port,
				     ends->source_port};
}

bool agent_same_ends(const struct segment_ends *a, const struct segment_ends *b)
{
	return a->source == b->source && a->destination == b->destination &&
	       a->source_port == b->source_port && a->destination_port == b->destination_port;
}

int agent_begin(struct agent *agent, size_t connection_bytes)
{
	agent->connection_bytes = connection_bytes;
	agent->connections = calloc(CONNECTIONS_MAX, connection_bytes);
	return agent->connections ? 0 : -1;
}

void *agent_at(const struct agent *agent, size_t i)
{
	return agent->connections + i * agent->connection_bytes;
}

static void forget(struct agent *agent, void *connection)
{
	cache_free(&((struct followed *)connection)->cache);
	memset(connection, 0, agent->connection_bytes);
}

void agent_end(struct agent *agent)
{
	size_t i;

	for (i = 0; agent->connections && i < CONNECTIONS_MAX; i++)
		forget(agent, agent_at(agent, i));
	free(agent->connections);
	agent->connections = NULL;
}

/* The connection, or NULL; with `make` a new one in the place of the one that was idle for longest. */
static void *follow(struct agent *agent, const struct segment_ends *ends, bool make)
{
	struct followed *oldest = agent_at(agent, 0), *followed;
	size_t i;

	for (i = 0; i < CONNECTIONS_MAX; i++) {
		followed = agent_at(agent, i);
		if (followed->used && agent_same_ends(&followed->ends, ends))
			return followed;
		if (oldest->used && (!followed->used || followed->touched_ns < oldest->touched_ns))
			oldest = followed;
	}
	if (!make)
		return NULL;
	forget(agent, oldest);
	if (cache_make(&oldest->cache, agent->cache_packets))
		return NULL;
	oldest->used = true;
	oldest->ends = *ends;
	return oldest;
}

void *agent_connection_of(struct agent *agent, enum agent_side side, const struct segment *segment,
			  bool *data)
{
	bool control = segment->flags & (SEGMENT_SYN | SEGMENT_RST);
	struct segment_ends ends = ends_of(side, segment);
	void *connection;

	*data = side == FROM_FIXED && !control && (segment->payload || segment->flags & SEGMENT_FIN);
	connection = follow(agent, &ends, *data);
	if (connection && control) { /* over, or another one between the same ports */
		forget(agent, connection);
		return NULL;
	}
	return connection;
}
