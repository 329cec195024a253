// SPDX-License-Identifier: Apache-2.0
/* agent: a performance-enhancing proxy (RFC 3135) on a router, of one of the kinds of docs/agents.md. */
#include "agent.h"
#include "clock.h"
#include "forward.h"
#include "mtcp.h"
#include "ndjson.h"
#include "options.h"
#include "proxy.h"
#include "snoop.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SNOOP	   1u
#define MTCP	   2u
#define PROXY	   4u
#define ANY	   ~0u
#define AT(member) offsetof(struct settings, member)
#define HOUR_NS	   (INT64_C(3600) * NS_PER_S)
#define EXIT_USAGE 2

struct settings {
	const char *kind, *sack;
	int64_t interface, queue, queue_packets, cache_packets, timeout_min_ns, retransmissions;
	int64_t away_after_ns, hold_ns;
	struct proxy proxy;
};

static const struct option_row rows[] = {
    {"kind", OPTION_WORD, ~0u, ANY, AT(kind), 0, 0, 0, "snoop|mtcp|itcp-proxy", "which agent", "snoop"},
    {"interface", OPTION_NUMBER, ~0u, SNOOP | MTCP, AT(interface), 1, INT32_MAX, OPTION_NOT_GIVEN, NULL,
     "index of the interface towards the mobile host", "12"},
    {"queue", OPTION_NUMBER, ~0u, SNOOP | MTCP, AT(queue), 0, 65535, 1, NULL, "number of the netfilter queue",
     "1"},
    {"queue-packets", OPTION_NUMBER, ~0u, SNOOP | MTCP, AT(queue_packets), 1, 1000000, 1024, NULL,
     "packets that may wait for the agent; what comes to a full queue passes by it", "1024"},
    {"cache-packets", OPTION_NUMBER, ~0u, SNOOP | MTCP, AT(cache_packets), 1, CACHE_MAX, 100, NULL,
     "segments kept of each connection", "100"},
    {"timeout-min-ns", OPTION_NUMBER, ~0u, SNOOP, AT(timeout_min_ns), 1000000, HOUR_NS, 100000000, NULL,
     "least time after which a segment is sent again by the agent's own timer", "100000000"},
    {"retransmissions", OPTION_NUMBER, ~0u, SNOOP, AT(retransmissions), 1, 1000, 10, NULL,
     "of one segment, at most", "10"},
    {"sack", OPTION_WORD, ~0u, SNOOP, AT(sack), 0, 0, 0, "hide|pass",
     "blocks of new acknowledgements while the agent still has what they say is missing: hidden from the "
     "sender (hide when not given), or passed",
     "pass"},
    {"away-after-ns", OPTION_NUMBER, ~0u, MTCP, AT(away_after_ns), 1000000, HOUR_NS, 100000000, NULL,
     "least silence after which the mobile host counts as away", "100000000"},
    {"hold-ns", OPTION_NUMBER, ~0u, MTCP, AT(hold_ns), 1000000, HOUR_NS, 100000000, NULL,
     "longest time for which the last byte's acknowledgement is held back when nothing else is on the way",
     "100000000"},
    {"port", OPTION_NUMBERS, ~0u, PROXY, AT(proxy.ports), 1, 65535, 0, NULL, "of the hosts that listen",
     "5001,5002"},
    {"buffer-bytes", OPTION_NUMBER, ~0u, PROXY, AT(proxy.buffer_bytes), 2048, 1 << 29, 65536, NULL,
     "of the relay in each direction, and of each socket's buffers", "65536"},
    {"congestion", OPTION_WORD, ~0u, PROXY, AT(proxy.congestion), 0, 0, 0, NULL,
     "congestion control of the onward connection", "reno"},
};

static const struct option_table table = {
    .program = "agent", .role = ~0u, .rows = rows, .count = sizeof(rows) / sizeof(rows[0])};

static void write_options(struct ndjson *out, const struct settings *settings)
{
	ndjson_begin(out, "options");
	options_write(&table, settings, out);
	ndjson_end(out);
}

/* The kind's bit of the table's masks; 0: there is no such kind. */
static unsigned int kind_of(const struct settings *settings)
{
	if (!settings->kind)
		return 0;
	return !strcmp(settings->kind, "snoop") ? SNOOP : !strcmp(settings->kind, "mtcp") ? MTCP : PROXY;
}

static int check(const struct settings *settings, struct option_result *result)
{
	unsigned int kind = kind_of(settings);

	if (!kind)
		return options_error(&table, "kind", "is missing", result);
	if (kind != PROXY && settings->interface == OPTION_NOT_GIVEN)
		return options_error(&table, "interface", "is missing", result);
	if (kind == PROXY && !settings->proxy.ports.count)
		return options_error(&table, "port", "is missing", result);
	return options_refuse(&table, kind, settings->kind, result);
}

static int run(const struct settings *settings, struct ndjson *out)
{
	struct forward forward = {(uint16_t)settings->queue, (uint32_t)settings->queue_packets,
				  (uint32_t)settings->interface};
	struct agent agent = {
	    .cache_packets = (size_t)settings->cache_packets,
	    .timeout_min_ns = settings->timeout_min_ns,
	    .retransmissions_most = (unsigned int)settings->retransmissions,
	    .hide_sack = !settings->sack || strcmp(settings->sack, "pass") != 0,
	    .away_after_ns = settings->away_after_ns,
	    .hold_ns = settings->hold_ns,
	};

	if (kind_of(settings) == PROXY)
		return proxy_run(&settings->proxy, out);
	return forward_run(&forward, &agent, kind_of(settings) == SNOOP ? &snoop_kind : &mtcp_kind, out);
}

int main(int argc, char **argv)
{
	struct settings settings = {0};
	struct option_result result = {0};
	struct ndjson out;
	int status;

	if (options_parse(&table, argc, argv, &settings, &result) == 0 && result.help) {
		options_help(&table, "helps TCP over the last hop, on the router before it");
		return 0;
	}
	if (result.message[0] || check(&settings, &result)) {
		fprintf(stderr, "%s\n", result.message);
		return EXIT_USAGE;
	}
	clock_timerslack();
	ndjson_init(&out, STDOUT_FILENO);
	write_options(&out, &settings);
	status = run(&settings, &out);
	ndjson_free(&out);
	return status;
}
