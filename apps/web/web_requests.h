/* SPDX-License-Identifier: Apache-2.0 */
/* web_requests: the pages of web-client under way: opens their connections and requests their objects. */
#ifndef NETWARP_WEB_REQUESTS_H
#define NETWARP_WEB_REQUESTS_H

#include "web_config.h"
#include "web_frame.h"
#include "web_page.h"
#include "web_socket.h"

/* An object of the page under way: 0 is the HTML. */
struct object {
	uint64_t bytes, received;
	unsigned int connection;
	uint16_t stream;
	int64_t requested_ns, first_ns, complete_ns; /* 0: not yet */
	struct piece *pieces;			     /* with --frame-bytes */
	unsigned int pieces_count;
};

/* Where in its connection's bytes a frame of an object lies. */
struct piece {
	uint64_t start, bytes;
};

struct connection {
	struct flow flow;
	unsigned int number;
	bool open, up;
	uint16_t port;			 /* of this end */
	uint16_t asked[WEB_OBJECTS_MAX]; /* objects in the order of their requests */
	unsigned int count, sent;	 /* of asked: assigned to it, requested */
	struct web_frame frame;		 /* with --frame-bytes: being read */
	uint64_t read;			 /* bytes of this connection so far */
};

struct client {
	struct web_config config;
	struct web_waiter waiter;
	struct flow *flow; /* of the first connection: it reports errors */
	bool sctp;
	uint32_t page;
	struct object objects[WEB_OBJECTS_MAX];
	unsigned int first, last; /* objects are first .. last - 1; first is 1 without HTML */
	unsigned int next, complete;
	struct connection connections[WEB_CONNECTIONS_MAX];
	unsigned int used; /* of connections */
	uint64_t pages, received_bytes, corrupt_bytes, opened;
	int64_t page_ns;
	bool failed, stopped;
	uint8_t *buffer;
	uint8_t *requests; /* room for those of a page */
};

/* Report an error (errno or 0): the client ends as failed. */
void web_fail(struct client *client, const char *what, int error, const char *detail);

/* Begin to connect. 0, or -1: the client has failed. */
int web_open_connection(struct client *client, unsigned int number);
void web_close_all(struct client *client);

/* Let an object be requested over this connection, behind those assigned before. */
void web_assign(struct connection *connection, unsigned int number);
/* Send the requests that are assigned and may go: all, or with --serial one at a time; with frames in one
 * call, as HTTP/2's clients do it: else the server would have sent the first object whole when it reads the
 * second request. */
void web_request_assigned(struct client *client, struct connection *connection);
/* The objects behind the HTML: over the connections in turn, or, one at a time, to whichever is free. */
void web_request_objects(struct client *client);

#endif
