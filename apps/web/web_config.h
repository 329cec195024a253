/* SPDX-License-Identifier: Apache-2.0 */
/*
 * web_config: the options of `web-server` and `web-client`. What a page is stands before `--`; behind it are
 * the transport's options, those of `receiver` for the server and of `sender` for the client
 * (traffic/config.h).
 */
#ifndef NETWARP_WEB_CONFIG_H
#define NETWARP_WEB_CONFIG_H

#include "../traffic/config.h"
#include "options.h"

#define ROLE_SERVER 4U
#define ROLE_CLIENT 8U

struct web_config {
	struct number_list html_bytes; /* empty: pages without: their objects are requested at once */
	struct number_list object_bytes, page_objects;
	int64_t request_bytes;
	int64_t pages;
	struct number_list think_ns;
	int64_t connections; /* of a page */
	int64_t expected;    /* connections that a server waits for in all */
	bool serial;	     /* one request at a time on a connection */
	int64_t frame_bytes; /* 0: objects come whole; else in frames, in turn */
	bool keep;	     /* the pages share their connections */
	int64_t streams, message_bytes;
	const char *order; /* which object's message a server hands over next */
	bool interleave;   /* I-DATA */
	struct config transport;
};

/* As config_read(): -1 to go on, else the exit status. */
int web_config_read(struct web_config *config, unsigned int role, int argc, char **argv);

struct ndjson;
/* Two records `options`: of the page, and of the transport. */
void web_config_write(const struct web_config *config, unsigned int role, struct ndjson *out);

#endif
