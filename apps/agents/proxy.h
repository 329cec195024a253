/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proxy: the base station of I-TCP (Bakre and Badrinath, 1995): ends a connection and relays its bytes over
 * one of its own to where the first was meant to go, each under the addresses and ports of both hosts.
 */
#ifndef NETWARP_PROXY_H
#define NETWARP_PROXY_H

#include "options.h"

struct ndjson;

struct proxy {
	struct number_list ports; /* of the hosts that listen: the router's rules bring their packets here */
	int64_t buffer_bytes;	/* of the relay in each direction, and what is asked for each socket buffer */
	const char *congestion; /* of the onward connections; NULL: the kernel's own */
};

/* Relay until SIGTERM; records go to standard output. Returns an exit status. */
int proxy_run(const struct proxy *proxy, struct ndjson *out);

#endif
