// SPDX-License-Identifier: Apache-2.0
/* web-client: fetches pages, checks every byte of their objects and reports when each was there. */
#include "../traffic/pattern.h"
#include "../traffic/protocols.h"
#include "../traffic/sender_due.h"
#include "clock.h"
#include "web_frame.h"
#include "web_page.h"
#include "web_socket.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define BUFFER_BYTES 262144

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

static void fail(struct client *client, const char *what, int error, const char *detail)
{
	flow_error(client->flow, what, error, detail);
	client->failed = true;
}

static int open_connection(struct client *client, unsigned int number)
{
	struct connection *connection = &client->connections[number];
	struct flow *flow = &connection->flow;
	union address local;
	socklen_t len = sizeof(local);

	connection->number = number;
	connection->up = false;
	connection->count = connection->sent = 0;
	connection->read = 0;
	connection->frame.left = 0;
	connection->frame.head_left = WEB_FRAME_HEAD;
	flow->fd = flow->listen_fd = -1;
	flow->established = false;
	flow->waiter.events = 0;
	if (flow->ops->open(flow)) {
		client->failed = true;
		return -1;
	}
	connection->open = true;
	if (web_socket_prepare(flow->fd, &client->config, false)) {
		fail(client, "page options", errno,
		     client->config.interleave ? "I-DATA needs net.sctp.intl_enable = 1" : NULL);
		return -1;
	}
	if (flow->ops->connect(flow)) {
		client->failed = true;
		return -1;
	}
	if (web_waiter_add(&client->waiter, flow->fd, connection)) {
		fail(client, "epoll", errno, NULL);
		return -1;
	}
	if (getsockname(flow->fd, &local.any, &len) == 0)
		connection->port = address_port(&local.any);
	if (number >= client->used)
		client->used = number + 1;
	client->opened++;
	return 0;
}

static void close_connections(struct client *client)
{
	unsigned int i;

	for (i = 0; i < client->used; i++) {
		if (client->connections[i].open)
			client->connections[i].flow.ops->close(&client->connections[i].flow, false);
		client->connections[i].open = false;
	}
	client->used = 0;
}

/* Write the request of the next object that is assigned. */
static void write_request(struct client *client, struct connection *connection, uint8_t *to)
{
	uint16_t number = connection->asked[connection->sent++];
	struct object *object = &client->objects[number];
	struct web_request wanted = {.page = client->page, .object = number, .bytes = object->bytes};

	object->connection = connection->number;
	if (client->sctp)
		object->stream = (uint16_t)(number % client->config.streams);
	web_request_write(&wanted, (uint64_t)client->config.transport.token, to,
			  (size_t)client->config.request_bytes);
	object->requested_ns = clock_monotonic_ns();
}

static void send_requests(struct client *client, struct connection *connection, const uint8_t *data,
			  size_t len)
{
	uint16_t stream = client->objects[connection->asked[connection->sent - 1]].stream;
	size_t written = 0;

	if (web_write(connection->flow.fd, client->sctp, data, len, &written, stream) != WEB_DATA ||
	    written != len)
		fail(client, "request", errno, "the kernel did not take it whole");
}

/* Send the requests that are assigned and may go: all, or with --serial one at a time; with frames in one
 * call, as HTTP/2's clients do it: else the server would have sent the first object whole when it reads the
 * second request. */
static void request(struct client *client, struct connection *connection)
{
	size_t size = (size_t)client->config.request_bytes, len = 0;

	while (connection->up && connection->sent < connection->count && !client->failed) {
		if (client->config.serial && connection->sent &&
		    !client->objects[connection->asked[connection->sent - 1]].complete_ns)
			return;
		write_request(client, connection, client->requests + len);
		len += size;
		if (client->config.frame_bytes && connection->sent < connection->count)
			continue;
		send_requests(client, connection, client->requests, len);
		len = 0;
	}
}

static void assign(struct connection *connection, unsigned int number)
{
	connection->asked[connection->count++] = (uint16_t)number;
}

/* The objects behind the HTML: over the connections in turn, or, one at a time, to whichever is free. */
static void request_objects(struct client *client)
{
	unsigned int wanted = (unsigned int)client->config.connections, i;

	if (client->next > 1)
		return;
	client->next = client->next ? client->next : 1;
	if (wanted > client->last - 1)
		wanted = client->last - 1;
	for (i = client->used; i < wanted; i++)
		if (open_connection(client, i))
			return;
	if (client->config.serial) {
		for (i = 0; i < wanted && client->next < client->last; i++)
			assign(&client->connections[i], client->next++);
	} else {
		for (; client->next < client->last; client->next++)
			assign(&client->connections[(client->next - 1) % (wanted ? wanted : 1)],
			       client->next);
	}
	for (i = 0; i < client->used; i++)
		request(client, &client->connections[i]);
}

/* "start:bytes,start:bytes": what no other end knows of frames. */
static void report_pieces(struct client *client, const struct object *object)
{
	size_t size = object->pieces_count * sizeof("18446744073709551615:16777215,"), len = 0;
	char *text = malloc(size);
	unsigned int i;

	if (!text) {
		fail(client, "memory", ENOMEM, NULL);
		return;
	}
	for (i = 0; i < object->pieces_count; i++)
		len += (size_t)snprintf(text + len, size - len, "%s%" PRIu64 ":%" PRIu64, i ? "," : "",
					object->pieces[i].start, object->pieces[i].bytes);
	ndjson_strn(&client->flow->out, "pieces", text, len);
	free(text);
}

static void report(struct client *client, unsigned int number)
{
	const struct object *object = &client->objects[number];
	struct ndjson *out = &client->flow->out;

	ndjson_begin(out, "object");
	ndjson_uint(out, "page", client->page);
	ndjson_uint(out, "object", number);
	ndjson_uint(out, "port", client->connections[object->connection].port);
	ndjson_uint(out, "stream", object->stream);
	ndjson_uint(out, "bytes", object->bytes);
	ndjson_int(out, "requested_t_ns", object->requested_ns);
	ndjson_int(out, "first_t_ns", object->first_ns);
	ndjson_int(out, "complete_t_ns", object->complete_ns);
	if (object->pieces)
		report_pieces(client, object);
	ndjson_end(out);
}

static void completed(struct client *client, struct connection *connection, unsigned int number)
{
	client->complete++;
	report(client, number);
	if (number == 0)
		request_objects(client);
	else if (client->config.serial && client->next < client->last)
		assign(connection, client->next++);
	request(client, connection);
}

/* The object that the next bytes of this connection and stream belong to; -1: none was asked for. */
static int expected(const struct client *client, const struct connection *connection, uint16_t stream)
{
	unsigned int i;

	for (i = 0; i < connection->sent; i++)
		if (!client->objects[connection->asked[i]].complete_ns &&
		    client->objects[connection->asked[i]].stream == stream)
			return connection->asked[i];
	return -1;
}

/* The next bytes of an object; how many of them are its own. */
static size_t take(struct client *client, struct connection *connection, unsigned int number,
		   const uint8_t *data, size_t len, int64_t now)
{
	struct object *object = &client->objects[number];
	size_t part = len < object->bytes - object->received ? len : object->bytes - object->received;
	size_t first;

	client->corrupt_bytes +=
	    pattern_check(data, part, (uint16_t)number, client->page, object->received, &first);
	if (!object->first_ns)
		object->first_ns = now;
	object->received += part;
	client->received_bytes += part;
	if (object->received == object->bytes) {
		object->complete_ns = now;
		completed(client, connection, number);
	}
	return part;
}

static void received(struct client *client, struct connection *connection, const uint8_t *data, size_t len,
		     uint16_t stream, int64_t now)
{
	size_t part;
	int number;

	while (len && !client->failed) {
		number = expected(client, connection, stream);
		if (number < 0) {
			fail(client, "recvmsg", EPROTO, "more than was asked for");
			return;
		}
		part = take(client, connection, (unsigned int)number, data, len, now);
		data += part;
		len -= part;
	}
}

/* Whether a frame is of an object that was asked for over this connection, and not longer than what is left
 * of it. */
static bool frame_fits(const struct client *client, const struct connection *connection)
{
	const struct web_frame *frame = &connection->frame;
	const struct object *object;
	unsigned int i;

	for (i = 0; i < connection->sent; i++) {
		object = &client->objects[connection->asked[i]];
		if (connection->asked[i] == frame->object)
			return frame->left <= object->bytes - object->received;
	}
	return false;
}

static bool add_piece(struct client *client, struct connection *connection)
{
	struct object *object = &client->objects[connection->frame.object];
	struct piece *more = realloc(object->pieces, (object->pieces_count + 1) * sizeof(*more));

	if (!more) {
		fail(client, "memory", ENOMEM, NULL);
		return false;
	}
	object->pieces = more;
	more[object->pieces_count++] = (struct piece){connection->read, connection->frame.left};
	return true;
}

static void received_frames(struct client *client, struct connection *connection, const uint8_t *data,
			    size_t len, int64_t now)
{
	struct web_frame *frame = &connection->frame;
	size_t part;

	while (len && !client->failed) {
		if (frame->head_left) {
			part = len < frame->head_left ? len : frame->head_left;
			memcpy(frame->head + WEB_FRAME_HEAD - frame->head_left, data, part);
			frame->head_left -= part;
			client->received_bytes += part;
			connection->read += part;
			if (!frame->head_left) {
				if (!web_frame_read(frame) || !frame_fits(client, connection))
					fail(client, "recvmsg", EPROTO, "no frame of what was asked for");
				else if (!add_piece(client, connection))
					return;
			}
		} else {
			part = len < frame->left ? len : frame->left;
			/* completing an object may open connections, and reports its pieces */
			connection->read += part;
			frame->left -= part;
			if (!frame->left)
				frame->head_left = WEB_FRAME_HEAD;
			take(client, connection, frame->object, data, part, now);
		}
		data += part;
		len -= part;
	}
}

static void read_all(struct client *client, struct connection *connection)
{
	uint16_t stream;
	enum web_io io;
	size_t len;

	while (!client->failed) {
		io = web_read(connection->flow.fd, client->sctp, client->buffer, BUFFER_BYTES, &len, &stream);
		if (io == WEB_EMPTY)
			return;
		if (io != WEB_DATA) {
			fail(client, "recvmsg", io == WEB_CLOSED ? 0 : errno,
			     "the connection ended before the page");
			return;
		}
		if (client->config.frame_bytes)
			received_frames(client, connection, client->buffer, len, clock_monotonic_ns());
		else
			received(client, connection, client->buffer, len, stream, clock_monotonic_ns());
	}
}

static void event(struct client *client, struct connection *connection, uint32_t events)
{
	enum flow_io io;

	connection->flow.waiter.events = events;
	if (!connection->up) {
		io = connection->flow.ops->connected(&connection->flow);
		if (io == FLOW_FAILED)
			client->failed = true;
		if (io != FLOW_DONE)
			return;
		connection->up = true;
		if (web_socket_check(connection->flow.fd, &client->config, false)) {
			fail(client, "page options", errno, "I-DATA is not in force");
			return;
		}
		if (client->pages == 0 && connection->number == 0)
			flow_connected(&connection->flow, clock_monotonic_ns());
	}
	request(client, connection);
	if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		read_all(client, connection);
}

/* Until a time (WAIT_NEVER: the page is complete). */
static void wait_events(struct client *client, int64_t until_ns)
{
	struct epoll_event events[WEB_EVENTS];
	int i, n;

	while (!client->failed && !client->stopped) {
		if (until_ns == WAIT_NEVER && client->complete == client->last - client->first)
			return;
		n = waiter_wait(&client->waiter.waiter, until_ns);
		if (n < 0) {
			fail(client, "epoll", errno, NULL);
			return;
		}
		if (n & WAIT_STOPPED)
			client->stopped = true;
		if (n & WAIT_SOCKET) {
			n = epoll_wait(client->waiter.epoll_fd, events, WEB_EVENTS, 0);
			for (i = 0; i < n && !client->failed && until_ns == WAIT_NEVER; i++)
				event(client, events[i].data.ptr, events[i].events);
		} else if (n & WAIT_TIME) {
			return;
		}
	}
}

static void forget_objects(struct client *client)
{
	unsigned int i;

	for (i = 0; i < WEB_OBJECTS_MAX; i++)
		free(client->objects[i].pieces);
	memset(client->objects, 0, sizeof(client->objects));
}

/* Of the kinds of pages that take turns: this page's. */
static unsigned int kind_of(const struct client *client, unsigned int kinds)
{
	return kinds ? client->page % kinds : 0;
}

static void begin_page(struct client *client)
{
	const struct number_list *counts = &client->config.page_objects,
				 *sizes = &client->config.object_bytes;
	unsigned int i, kind = kind_of(client, counts->count), from = 0;
	unsigned int count = counts->count ? (unsigned int)counts->items[kind] : sizes->count;
	bool html = client->config.html_bytes.count > 0;

	forget_objects(client);
	for (i = 0; i < kind; i++)
		from += (unsigned int)counts->items[i];
	for (i = 0; i < count; i++)
		client->objects[i + 1].bytes = (uint64_t)sizes->items[from + i];
	client->objects[0].bytes = html ? (uint64_t)client->config.html_bytes.items[kind] : 0;
	client->first = html ? 0 : 1;
	client->last = count + 1;
	client->next = 0;
	client->complete = 0;
	client->page_ns = clock_monotonic_ns();
	for (i = 0; i < client->used; i++)
		client->connections[i].count = client->connections[i].sent = 0;
	if (!client->used && open_connection(client, 0))
		return;
	if (!html) {
		request_objects(client);
		return;
	}
	assign(&client->connections[0], 0);
	request(client, &client->connections[0]);
}

static void end_page(struct client *client)
{
	ndjson_begin(&client->flow->out, "page");
	ndjson_uint(&client->flow->out, "page", client->page);
	ndjson_int(&client->flow->out, "start_t_ns", client->page_ns);
	ndjson_int(&client->flow->out, "end_t_ns", clock_monotonic_ns());
	ndjson_end(&client->flow->out);
	client->pages++;
}

static const char *fetch(struct client *client, int64_t t0_ns, int64_t start_ns)
{
	const struct number_list *thinks = &client->config.think_ns;
	int64_t now, think_ns = 0;

	wait_events(client, start_ns);
	now = clock_monotonic_ns();
	ndjson_begin(&client->flow->out, "start");
	ndjson_int(&client->flow->out, "t_ns", now);
	ndjson_int(&client->flow->out, "late_ns", now - start_ns);
	ndjson_int(&client->flow->out, "t0_monotonic_ns", t0_ns);
	ndjson_end(&client->flow->out);
	for (client->page = 0; client->page < client->config.pages; client->page++) {
		if (client->failed || client->stopped)
			break;
		if (think_ns)
			wait_events(client, clock_monotonic_ns() + think_ns);
		begin_page(client);
		wait_events(client, WAIT_NEVER);
		if (client->failed || client->stopped)
			break;
		end_page(client);
		if (thinks->count)
			think_ns = thinks->items[kind_of(client, thinks->count)];
		if (!client->config.keep)
			close_connections(client);
	}
	close_connections(client);
	if (client->corrupt_bytes)
		fail(client, "content", 0, "bytes differ from what was asked for");
	return client->failed ? "failed" : client->stopped ? "terminated" : "done";
}

int main(int argc, char **argv)
{
	static struct client client;
	const char *reason = "failed";
	unsigned int i;
	int64_t t0_ns;
	int status = web_config_read(&client.config, ROLE_CLIENT, argc, argv);

	if (status >= 0)
		return status;
	client.sctp = config_protocol(&client.config.transport) == PROTOCOL_SCTP;
	for (i = 0; i < WEB_CONNECTIONS_MAX; i++) {
		client.connections[i].flow.config = &client.config.transport;
		client.connections[i].flow.role = ROLE_SENDER;
		client.connections[i].flow.fd = client.connections[i].flow.listen_fd = -1;
		client.connections[i].flow.ops = transport_of(&client.config.transport);
		schedule_init(&client.connections[i].flow.schedule, &client.config.transport);
		ndjson_init(&client.connections[i].flow.out, STDOUT_FILENO);
	}
	client.flow = &client.connections[0].flow;
	web_config_write(&client.config, ROLE_CLIENT, &client.flow->out);
	t0_ns = client.config.transport.t0_realtime_ns + clock_monotonic_offset_ns();
	client.buffer = malloc(BUFFER_BYTES);
	client.requests = malloc((size_t)client.config.request_bytes * WEB_OBJECTS_MAX);
	if (!client.buffer || !client.requests || clock_timerslack() || web_waiter_open(&client.waiter))
		flow_error(client.flow, "setup", errno, NULL);
	else
		reason = fetch(&client, t0_ns, t0_ns + client.config.transport.start_ns + AFTER_TIMELINE_NS);
	for (i = 0; i < WEB_CONNECTIONS_MAX; i++)
		if (!client.flow->status)
			client.flow->status = client.connections[i].flow.status;
	ndjson_begin(&client.flow->out, "summary");
	ndjson_int(&client.flow->out, "t_ns", clock_monotonic_ns());
	ndjson_uint(&client.flow->out, "pages", client.pages);
	ndjson_uint(&client.flow->out, "connections", client.opened);
	ndjson_uint(&client.flow->out, "unique_bytes", client.received_bytes);
	ndjson_uint(&client.flow->out, "corrupt_bytes", client.corrupt_bytes);
	ndjson_str(&client.flow->out, "reason", reason);
	ndjson_int(&client.flow->out, "status", client.flow->status);
	ndjson_end(&client.flow->out);
	free(client.buffer);
	free(client.requests);
	forget_objects(&client);
	web_waiter_close(&client.waiter);
	for (i = 1; i < WEB_CONNECTIONS_MAX; i++)
		ndjson_free(&client.connections[i].flow.out);
	return flow_exit(client.flow);
}
