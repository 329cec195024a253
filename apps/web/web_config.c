// SPDX-License-Identifier: Apache-2.0
/* Documented in web_config.h. */
#include "web_config.h"

#include "../traffic/pattern.h"
#include "ndjson.h"
#include "web_frame.h"
#include "web_page.h"

#include <stdio.h>
#include <string.h>

#define BOTH	   (ROLE_SERVER | ROLE_CLIENT)
#define ANY	   (PROTOCOL_TCP | PROTOCOL_SCTP)
#define AT(member) offsetof(struct web_config, member)
#define DAY_NS	   (INT64_C(24) * 3600 * 1000000000)

static const struct option_row rows[] = {
    {"html-bytes", OPTION_NUMBERS, ROLE_CLIENT, ANY, AT(html_bytes), 1, (int64_t)PATTERN_MESSAGE_MAX, 0, NULL,
     "size of the HTML, after which the objects are requested, one for every kind of page; not given: they "
     "are "
     "requested at once",
     "13500"},
    {"object-bytes", OPTION_NUMBERS, ROLE_CLIENT, ANY, AT(object_bytes), 1, (int64_t)PATTERN_MESSAGE_MAX, 0,
     NULL, "sizes of the objects", "13500,13500"},
    {"page-objects", OPTION_NUMBERS, ROLE_CLIENT, ANY, AT(page_objects), 0, WEB_OBJECTS_MAX - 1, 0, NULL,
     "kinds of pages that take turns: how many of the objects belong to each; not given: one kind, with all",
     "3,5"},
    {"request-bytes", OPTION_NUMBER, BOTH, ANY, AT(request_bytes), WEB_REQUEST_MIN, WEB_REQUEST_MAX, 300,
     NULL, "size of every request", "300"},
    {"pages", OPTION_NUMBER, ROLE_CLIENT, ANY, AT(pages), 1, 1000000, 1, NULL, "pages, one after another",
     "10"},
    {"think-ns", OPTION_NUMBERS, ROLE_CLIENT, ANY, AT(think_ns), 0, DAY_NS, 0, NULL,
     "from the end of a page to the start of the next; of several numbers the n-th after each page of that "
     "kind",
     "1000000000"},
    {"connections", OPTION_NUMBER, ROLE_CLIENT, PROTOCOL_TCP, AT(connections), 1, WEB_CONNECTIONS_MAX, 1,
     NULL, "TCP connections of a page; all but the first are opened when the HTML is there", "6"},
    {"expected", OPTION_NUMBER, ROLE_SERVER, ANY, AT(expected), 1, 100000000, 1, NULL,
     "end when that many connections have come and gone", "1"},
    {"serial", OPTION_FLAG, ROLE_CLIENT, PROTOCOL_TCP, AT(serial), 0, 0, 0, NULL,
     "one request at a time on a connection; else pipelined, the objects round robin over the connections",
     NULL},
    {"frame-bytes", OPTION_NUMBER, BOTH, PROTOCOL_TCP, AT(frame_bytes), 0, WEB_FRAME_BYTES_MAX, 0, NULL,
     "objects come in HTTP/2's DATA frames of at most this size, one of each object in turn; 0: whole, one "
     "after the other",
     "16384"},
    {"keep", OPTION_FLAG, ROLE_CLIENT, ANY, AT(keep), 0, 0, 0, NULL,
     "all pages over the same connections; else each page has its own", NULL},
    {"streams", OPTION_NUMBER, BOTH, PROTOCOL_SCTP, AT(streams), 1, 65535, 1, NULL,
     "object n (the HTML is 0) goes over stream n modulo this", "6"},
    {"message-bytes", OPTION_NUMBER, ROLE_SERVER, PROTOCOL_SCTP, AT(message_bytes), 0,
     (int64_t)PATTERN_MESSAGE_MAX, 0, NULL, "an object is sent in messages of this size; 0: in one", "488"},
    {"order", OPTION_WORD, ROLE_SERVER, PROTOCOL_SCTP, AT(order), 0, 0, 0, "fcfs|rr|prio",
     "SCTP_STREAM_SCHEDULER, and the order in which the server hands over messages: object after object as "
     "requested, one message of each in turn, or the lowest object number first",
     "rr"},
    {"interleave", OPTION_FLAG, BOTH, PROTOCOL_SCTP, AT(interleave), 0, 0, 0, NULL,
     "I-DATA (RFC 8260); needs net.sctp.intl_enable = 1", NULL},
};

static struct option_table table_of(unsigned int role)
{
	struct option_table table = {
	    .program = role == ROLE_SERVER ? "web-server" : "web-client",
	    .role = role,
	    .rows = rows,
	    .count = sizeof(rows) / sizeof(rows[0]),
	};

	return table;
}

static unsigned int transport_role(unsigned int role)
{
	return role == ROLE_SERVER ? ROLE_RECEIVER : ROLE_SENDER;
}

/* The numbers of a client's pages have to fit together. */
static void check_pages(const struct option_table *table, const struct web_config *config,
			struct option_result *result)
{
	const struct number_list *counts = &config->page_objects;
	unsigned int i, kinds = counts->count ? counts->count : 1;
	int64_t sum = 0;

	for (i = 0; i < counts->count; i++)
		sum += counts->items[i];
	if (!config->object_bytes.count && !config->html_bytes.count)
		options_error(table, "object-bytes", "this or --html-bytes has to be given", result);
	else if (counts->count && sum != config->object_bytes.count)
		options_error(table, "page-objects", "the numbers do not add up to the objects", result);
	else if (config->html_bytes.count && config->html_bytes.count != kinds)
		options_error(table, "html-bytes", "every kind of page needs one size", result);
	else if (config->think_ns.count > 1 && config->think_ns.count != kinds)
		options_error(table, "think-ns", "one number, or one for every kind of page", result);
	for (i = 0; i < counts->count && !config->html_bytes.count && !result->message[0]; i++)
		if (!counts->items[i])
			options_error(table, "page-objects", "a page without HTML needs an object", result);
}

int web_config_read(struct web_config *config, unsigned int role, int argc, char **argv)
{
	struct option_table table = table_of(role);
	struct option_result result;
	int own = 1, status;

	memset(config, 0, sizeof(*config));
	while (own < argc && strcmp(argv[own], "--") != 0)
		own++;
	if (options_parse(&table, own, argv, config, &result) == 0 && result.help) {
		options_help(&table, role == ROLE_SERVER
					 ? "serves pages; behind -- the options of `receiver`"
					 : "fetches pages; behind -- the options of `sender`");
		return 0;
	}
	if (!result.message[0] && own == argc)
		options_error(&table, "request-bytes", "-- and the transport's options have to follow",
			      &result);
	if (!result.message[0] && role == ROLE_CLIENT)
		check_pages(&table, config, &result);
	if (result.message[0]) {
		fprintf(stderr, "%s\n", result.message);
		return 2;
	}
	status = config_read(&config->transport, transport_role(role), argc - own, argv + own);
	if (status >= 0)
		return status;
	if (config_protocol(&config->transport) == PROTOCOL_MPTCP) {
		fprintf(stderr, "%s: --protocol: tcp or sctp\n", table.program);
		return 2;
	}
	if (options_refuse(&table, config_protocol(&config->transport), config->transport.protocol,
			   &result)) {
		fprintf(stderr, "%s\n", result.message);
		return 2;
	}
	return -1;
}

void web_config_write(const struct web_config *config, unsigned int role, struct ndjson *out)
{
	struct option_table table = table_of(role);

	ndjson_begin(out, "page_options");
	ndjson_str(out, "program", table.program);
	options_write(&table, config, out);
	ndjson_end(out);
	config_write(&config->transport, transport_role(role), out);
}
