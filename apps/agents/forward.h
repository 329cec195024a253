/* SPDX-License-Identifier: Apache-2.0 */
/* forward: an agent on a router's forwarding path: the netfilter queue, the raw socket, timers, signals. */
#ifndef NETWARP_FORWARD_H
#define NETWARP_FORWARD_H

#include "agent.h"

#include <stdint.h>

struct forward {
	uint16_t queue;
	uint32_t queue_packets;
	uint32_t interface; /* towards the mobile host */
};

/*
 * Mark that the agent sets on a packet to suppress; nftables rules behind the queue count and drop it. The
 * same number is MARK in orchestrator/netwarp/testbed/nftables.py.
 */
#define SUPPRESSED_MARK 0x6e77

/*
 * Run the agent until SIGTERM; records go to standard output. Returns an exit status (agent.h: 0, 1; 77 where
 * this kernel has no netfilter queue).
 */
int forward_run(const struct forward *forward, struct agent *agent, const struct agent_kind *kind,
		struct ndjson *out);

#endif
