// SPDX-License-Identifier: Apache-2.0
/* What these functions do and promise: web_config.h. */
#include "web_config.h"

#include "../traffic/pattern.h"
#include "ndjson.h"
#include "web_page.h"

#include <stdio.h>
#include <string.h>

#define BOTH	   (ROLE_SERVER | ROLE_CLIENT)
#define ANY	   (PROTOCOL_TCP | PROTOCOL_SCTP)
#define AT(member) offsetof(struct web_config, member)
#define NONE	   OPTION_NOT_GIVEN
#define DAY_NS	   (INT64_C(24) * 3600 * 1000000000)

static const struct option_row rows[] = {
    {"html-bytes", OPTION_NUMBER, ROLE_CLIENT, ANY, AT(html_bytes), 1, (int64_t)PATTERN_MESSAGE_MAX, NONE,
     NULL, "size of the HTML, after which the objects are requested; not given: they are requested at once",
     "13500"},
    {"object-bytes", OPTION_NUMBERS, ROLE_CLIENT, ANY, AT(object_bytes), 1, (int64_t)PATTERN_MESSAGE_MAX, 0,
     NULL, "sizes of the objects", "13500,13500"},
    {"request-bytes", OPTION_NUMBER, BOTH, ANY, AT(request_bytes), WEB_REQUEST_MIN, WEB_REQUEST_MAX, 300,
     NULL, "size of every request", "300"},
    {"pages", OPTION_NUMBER, ROLE_CLIENT, ANY, AT(pages), 1, 1000000, 1, NULL, "pages, one after another",
     "10"},
    {"think-ns", OPTION_NUMBER, ROLE_CLIENT, ANY, AT(think_ns), 0, DAY_NS, 0, NULL,
     "from the end of a page to the start of the next", "1000000000"},
    {"connections", OPTION_NUMBER, ROLE_CLIENT, PROTOCOL_TCP, AT(connections), 1, WEB_CONNECTIONS_MAX, 1,
     NULL, "TCP connections of a page; all but the first are opened when the HTML is there", "6"},
    {"expected", OPTION_NUMBER, ROLE_SERVER, ANY, AT(expected), 1, 100000000, 1, NULL,
     "end when that many connections have come and gone", "1"},
    {"serial", OPTION_FLAG, ROLE_CLIENT, PROTOCOL_TCP, AT(serial), 0, 0, 0, NULL,
     "one request at a time on a connection; else pipelined, the objects round robin over the connections",
     NULL},
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
	if (!result.message[0] && role == ROLE_CLIENT && !config->object_bytes.count &&
	    config->html_bytes == NONE)
		options_error(&table, "object-bytes", "this or --html-bytes has to be given", &result);
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
