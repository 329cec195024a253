// SPDX-License-Identifier: Apache-2.0
/*
 * libFuzzer's entry: turns arbitrary bytes into packets for an agent on the forwarding path, and into
 * messages of the kernel's queue. Besides the sanitisers' checks, MUST() checks every answer of the agent.
 * analyzer/replay.c runs it on files (no clang needed).
 *
 * Byte 0: bit 0 chooses the agent, bit 1 whether SACK is hidden. Then actions: one byte chooses the action
 * (in the order of the enum below), then come its operands: a packet from the fixed host or from the mobile
 * host (two bytes of length, then that many), time that passes (one byte, in 10 ms), the mobile host leaves
 * or returns, or a message of the kernel's queue (length and bytes as of a packet).
 * tests/unit/apps/test_agent_packets.py and every file of tests/data/agents rely on this format.
 */
#include "mtcp.h"
#include "queue.h"
#include "snoop.h"

#include "agent.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition)                                                                                      \
	do {                                                                                                 \
		if (!(condition))                                                                            \
			abort();                                                                             \
	} while (0)

#define TICK_NS INT64_C(10000000)

enum { DOWN, UP, WAIT, LEAVES, RETURNS, MESSAGE, ACTIONS };

/* Checks that an agent sends a whole TCP segment. */
static void sent(struct agent *agent, const uint8_t *data, size_t len)
{
	uint8_t *copy = malloc(len ? len : 1);
	struct segment segment;

	(void)agent;
	MUST(copy);
	memcpy(copy, data, len);
	MUST(segment_read(copy, len, &segment));
	MUST(segment.len == len);
	free(copy);
}

static void taken(void *context, const struct queued *packet)
{
	const uint8_t *bytes = context;

	MUST(!packet->data || packet->data > bytes);
	MUST(!packet->whole || packet->data);
}

/* Give the packet to the agent, in memory of exactly its length. */
static void give(struct agent *agent, const struct agent_kind *kind, enum agent_side side,
		 const uint8_t *data, size_t len, int64_t now_ns)
{
	uint8_t *copy = malloc(len ? len : 1);
	struct segment before, after;
	enum agent_verdict verdict;

	MUST(copy);
	memcpy(copy, data, len);
	if (segment_read(copy, len, &before)) {
		after = before;
		verdict = kind->packet(agent, side, &after, now_ns);
		if (verdict == AGENT_PASS) {
			MUST(!memcmp(copy, data, len)); /* as it was, to the byte */
		} else if (verdict == AGENT_CHANGED) {
			MUST(segment_read(copy, len, &after));
			MUST(agent_same_ends(&before.ends, &after.ends));
			MUST(after.seq == before.seq && after.payload == before.payload);
			MUST(after.flags == before.flags && after.len == before.len);
		}
	}
	free(copy);
}

static void message(const uint8_t *data, size_t len)
{
	uint8_t *copy = malloc(len ? len : 1);

	MUST(copy);
	memcpy(copy, data, len);
	queue_read(copy, len, taken, copy);
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct agent agent = {.cache_packets = 8,
			      .timeout_min_ns = TICK_NS,
			      .retransmissions_most = 3,
			      .away_after_ns = 3 * TICK_NS,
			      .hold_ns = 2 * TICK_NS,
			      .send = sent};
	const struct agent_kind *kind;
	int64_t now_ns = TICK_NS, until_ns;
	size_t at = 1, len;

	if (!size)
		return 0;
	kind = data[0] & 1 ? &mtcp_kind : &snoop_kind;
	agent.hide_sack = data[0] & 2;
	MUST(!kind->begin(&agent));
	while (size - at >= 2) {
		uint8_t action = data[at++] % ACTIONS;

		len = data[at];
		if (action == WAIT) {
			at++;
			for (until_ns = now_ns + (int64_t)len * TICK_NS; kind->next_ns(&agent) <= until_ns;) {
				if (kind->next_ns(&agent) > now_ns)
					now_ns = kind->next_ns(&agent);
				kind->timer(&agent, now_ns);
				MUST(kind->next_ns(&agent) > now_ns); /* a timer never runs twice at once */
			}
			now_ns = until_ns;
		} else if (action == LEAVES || action == RETURNS) {
			if (kind->moved)
				kind->moved(&agent, action == RETURNS, now_ns);
		} else {
			if (size - at < 2)
				break;
			len = len << 8 | data[at + 1];
			at += 2;
			if (len > size - at)
				len = size - at;
			if (action == MESSAGE)
				message(data + at, len);
			else
				give(&agent, kind, action == DOWN ? FROM_FIXED : FROM_MOBILE, data + at, len,
				     now_ns);
			at += len;
			now_ns += 1000;
		}
	}
	agent_end(&agent);
	return 0;
}
