// SPDX-License-Identifier: Apache-2.0
/* agent: a performance-enhancing proxy (RFC 3135) on a router, of one of the kinds of docs/agents.md. */
#include "agent.h"
#include "clock.h"
#include "forward.h"
#include "ndjson.h"
#include "options.h"
#include "snoop.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SNOOP	   1u
#define MTCP	   2u
#define AT(member) offsetof(struct settings, member)
#define HOUR_NS	   (INT64_C(3600) * NS_PER_S)
#define EXIT_USAGE 2

struct settings {
	const char *kind, *sack;
	int64_t interface, queue, queue_packets, cache_packets, timeout_min_ns, retransmissions;
};

static const struct option_row rows[] = {
    {"kind", OPTION_WORD, ~0u, ~0u, AT(kind), 0, 0, 0, "snoop", "which agent", "snoop"},
    {"interface", OPTION_NUMBER, ~0u, ~0u, AT(interface), 1, INT32_MAX, OPTION_NOT_GIVEN, NULL,
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
};

static const struct option_table table = {
    .program = "agent", .role = ~0u, .rows = rows, .count = sizeof(rows) / sizeof(rows[0])};

static void write_options(struct ndjson *out, const struct settings *settings)
{
	ndjson_begin(out, "options");
	options_write(&table, settings, out);
	ndjson_end(out);
}

int main(int argc, char **argv)
{
	struct settings settings = {0};
	struct option_result result;
	struct agent agent = {0};
	struct forward forward;
	struct ndjson out;
	int status;

	if (options_parse(&table, argc, argv, &settings, &result) == 0 && result.help) {
		options_help(&table, "helps TCP over the last hop, on the router before it");
		return 0;
	}
	if (!result.message[0] && (!settings.kind || settings.interface == OPTION_NOT_GIVEN))
		options_error(&table, settings.kind ? "interface" : "kind", "is missing", &result);
	else if (!result.message[0])
		options_refuse(&table, SNOOP, settings.kind, &result);
	if (result.message[0]) {
		fprintf(stderr, "%s\n", result.message);
		return EXIT_USAGE;
	}
	clock_timerslack();
	ndjson_init(&out, STDOUT_FILENO);
	write_options(&out, &settings);
	agent.cache_packets = (size_t)settings.cache_packets;
	agent.timeout_min_ns = settings.timeout_min_ns;
	agent.retransmissions_most = (unsigned int)settings.retransmissions;
	agent.hide_sack = !settings.sack || strcmp(settings.sack, "pass") != 0;
	forward = (struct forward){(uint16_t)settings.queue, (uint32_t)settings.queue_packets,
				   (uint32_t)settings.interface};
	status = forward_run(&forward, &agent, &snoop_kind, &out);
	ndjson_free(&out);
	return status;
}
