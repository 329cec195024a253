// SPDX-License-Identifier: Apache-2.0
/*
 * web-server: answers requests for objects until as many connections as expected have come and gone.
 *
 * Options: web_config.h; requests: web_page.h; frames: web_frame.h (web_client.c uses the same). It writes
 * the records options, listening and summary to stdout. orchestrator/netwarp/testbed/compile.py waits for
 * `listening` before the client starts, and measure/checks.py reads `summary`: the names of records and
 * members must stay.
 */
#include "../traffic/pattern.h"
#include "../traffic/protocols.h"
#include "clock.h"
#include "web_frame.h"
#include "web_page.h"
#include "web_socket.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define BUFFER_BYTES 65536

/* An object that is being sent. */
struct job {
	struct web_request request;
	uint16_t stream;
	uint64_t sent;
};

struct connection {
	int fd;
	uint8_t request[WEB_REQUEST_MAX];
	size_t have; /* of a request that TCP gave in part */
	struct job jobs[WEB_OBJECTS_MAX];
	unsigned int count;
	unsigned int turn;	 /* --order rr, frames: whose turn is next */
	struct web_frame frame;	 /* under way, with --frame-bytes */
	struct connection *next; /* of those that are open, or of those to be freed */
};

struct server {
	struct web_config config;
	struct web_waiter waiter;
	struct flow flow; /* listens */
	bool sctp;
	uint64_t connections, closed, requests, sent_bytes;
	struct connection *open, *gone; /* gone: to be freed once no event can name it */
	uint8_t *buffer;
	size_t buffer_bytes;
	bool failed;
};

static void fail(struct server *server, const char *what, int error, const char *detail)
{
	flow_error(&server->flow, what, error, detail);
	server->failed = true;
}

static void drop(struct server *server, struct connection *connection)
{
	struct connection **at = &server->open;

	if (connection->fd < 0)
		return;
	close(connection->fd);
	connection->fd = -1;
	while (*at != connection)
		at = &(*at)->next;
	*at = connection->next;
	connection->next = server->gone;
	server->gone = connection;
	server->closed++;
}

static void free_gone(struct server *server)
{
	struct connection *connection;

	while ((connection = server->gone)) {
		server->gone = connection->next;
		free(connection);
	}
}

/* TCP: the oldest. SCTP, --order fcfs: the oldest; rr: in turn; else the lowest object number. */
static unsigned int next_job(const struct server *server, const struct connection *connection)
{
	unsigned int i, best = 0;

	if (!server->sctp || !server->config.order || strcmp(server->config.order, "fcfs") == 0)
		return 0;
	if (strcmp(server->config.order, "rr") == 0)
		return connection->turn < connection->count ? connection->turn : 0;
	for (i = 1; i < connection->count; i++)
		if (connection->jobs[i].request.object < connection->jobs[best].request.object)
			best = i;
	return best;
}

/* The next frame of whichever object's turn it is. */
static void next_frame(const struct server *server, struct connection *connection)
{
	unsigned int number = connection->turn < connection->count ? connection->turn : 0;
	const struct job *job = &connection->jobs[number];
	uint64_t left = job->request.bytes - job->sent, bytes = (uint64_t)server->config.frame_bytes;

	connection->turn = number + 1;
	if (bytes > left)
		bytes = left;
	web_frame_write(&connection->frame, job->request.object, bytes, bytes == left);
	connection->frame.object = number;
}

/* Hand over what the kernel takes, in frames: head and bytes in one call, so that they share packets. */
static void pump_frames(struct server *server, struct connection *connection)
{
	struct web_frame *frame = &connection->frame;
	size_t head, len, written;
	struct job *job;
	enum web_io io;

	while (connection->fd >= 0 && connection->count) {
		if (!frame->head_left && !frame->left)
			next_frame(server, connection);
		job = &connection->jobs[frame->object];
		head = frame->head_left;
		len = frame->left;
		if (len > server->buffer_bytes - head)
			len = server->buffer_bytes - head;
		memcpy(server->buffer, frame->head + WEB_FRAME_HEAD - head, head);
		pattern_fill(server->buffer + head, len, (uint16_t)job->request.object, job->request.page,
			     job->sent);
		io = web_write(connection->fd, false, server->buffer, head + len, &written, 0);
		if (io == WEB_FAILED)
			fail(server, "sendmsg", errno, NULL);
		if (io == WEB_CLOSED)
			drop(server, connection);
		if (io != WEB_DATA)
			return;
		server->sent_bytes += written;
		if (head > written)
			head = written;
		frame->head_left -= head;
		frame->left -= written - head;
		job->sent += written - head;
		if (job->sent == job->request.bytes) {
			connection->count--;
			memmove(job, job + 1, (connection->count - frame->object) * sizeof(*job));
			connection->turn--; /* the next one has moved up */
		}
	}
}

/* Hand over what the kernel takes. */
static void pump(struct server *server, struct connection *connection)
{
	struct job *job;
	enum web_io io;
	unsigned int number;
	size_t len, written;

	while (connection->fd >= 0 && connection->count) {
		number = next_job(server, connection);
		job = &connection->jobs[number];
		len = job->request.bytes - job->sent;
		if (server->sctp && server->config.message_bytes &&
		    len > (size_t)server->config.message_bytes)
			len = (size_t)server->config.message_bytes;
		if (!server->sctp && len > server->buffer_bytes)
			len = server->buffer_bytes;
		if (len > server->buffer_bytes) {
			fail(server, "sendmsg", EMSGSIZE, "an object of one message: too large");
			return;
		}
		pattern_fill(server->buffer, len, (uint16_t)job->request.object, job->request.page,
			     job->sent);
		io = web_write(connection->fd, server->sctp, server->buffer, len, &written, job->stream);
		if (io == WEB_EMPTY)
			return;
		if (io == WEB_FAILED) {
			fail(server, "sendmsg", errno,
			     errno == EMSGSIZE ? "a message has to fit into the send buffer" : NULL);
			return;
		}
		if (io == WEB_CLOSED) {
			drop(server, connection);
			return;
		}
		job->sent += written;
		server->sent_bytes += written;
		/* only what was taken was a turn: else an object waits while the send buffer is full */
		connection->turn = number + 1;
		if (job->sent == job->request.bytes) {
			connection->count--;
			memmove(job, job + 1, (connection->count - number) * sizeof(*job));
			connection->turn--; /* the next one has moved up */
		}
	}
}

static void requested(struct server *server, struct connection *connection, const uint8_t *data, size_t len,
		      uint16_t stream)
{
	struct job *job = &connection->jobs[connection->count];

	if (len != (size_t)server->config.request_bytes || connection->count == WEB_OBJECTS_MAX ||
	    !web_request_read(&job->request, (uint64_t)server->config.transport.token, data, len)) {
		fail(server, "request", EPROTO, "not a request of this run");
		return;
	}
	job->stream = stream;
	job->sent = 0;
	connection->count++;
	server->requests++;
}

static void take(struct server *server, struct connection *connection)
{
	size_t size = (size_t)server->config.request_bytes, len;
	uint16_t stream;
	enum web_io io;

	while (!server->failed && connection->fd >= 0) {
		io = web_read(connection->fd, server->sctp, connection->request + connection->have,
			      size - connection->have, &len, &stream);
		if (io == WEB_EMPTY)
			return;
		if (io == WEB_FAILED)
			fail(server, "recvmsg", errno, NULL);
		if (io == WEB_CLOSED)
			drop(server, connection);
		if (io != WEB_DATA)
			return;
		connection->have += len;
		if (connection->have < size)
			continue;
		requested(server, connection, connection->request, size, stream);
		connection->have = 0;
	}
}

static void accept_all(struct server *server)
{
	struct connection *connection;
	enum flow_io io;

	while (!server->failed && (io = server->flow.ops->accept(&server->flow)) == FLOW_DONE) {
		connection = calloc(1, sizeof(*connection));
		if (!connection) {
			fail(server, "memory", ENOMEM, NULL);
			return;
		}
		connection->fd = server->flow.fd;
		connection->next = server->open;
		server->open = connection;
		if (server->connections++ == 0) {
			flow_connected(&server->flow, clock_monotonic_ns());
			if (web_socket_check(connection->fd, &server->config, true))
				fail(server, "page options", errno,
				     "streams, order or interleave are not in force");
		}
		if (web_socket_prioritise(connection->fd, &server->config))
			fail(server, "SCTP_STREAM_SCHEDULER_VALUE", errno, NULL);
		server->flow.fd = -1;
		if (web_waiter_add(&server->waiter, connection->fd, connection))
			fail(server, "epoll", errno, NULL);
	}
}

static void listening(struct server *server)
{
	ndjson_begin(&server->flow.out, "listening");
	ndjson_int(&server->flow.out, "t_ns", clock_monotonic_ns());
	ndjson_int(&server->flow.out, "port", server->config.transport.port);
	ndjson_end(&server->flow.out);
}

static const char *serve(struct server *server)
{
	struct epoll_event events[WEB_EVENTS];
	struct connection *connection;
	int i, n;

	if (server->flow.ops->open(&server->flow))
		return "failed";
	if (web_socket_prepare(server->flow.listen_fd, &server->config, true) ||
	    listen(server->flow.listen_fd, WEB_CONNECTIONS_MAX) ||
	    web_waiter_add(&server->waiter, server->flow.listen_fd, NULL)) {
		fail(server, "listen", errno, NULL);
		return "failed";
	}
	listening(server);
	while (!server->failed && server->closed < (uint64_t)server->config.expected) {
		n = waiter_wait(&server->waiter.waiter, WAIT_NEVER);
		if (n < 0) {
			fail(server, "epoll", errno, NULL);
			break;
		}
		if (n & WAIT_STOPPED)
			return "terminated";
		n = epoll_wait(server->waiter.epoll_fd, events, WEB_EVENTS, 0);
		for (i = 0; i < n && !server->failed; i++) {
			connection = events[i].data.ptr;
			if (!connection) {
				accept_all(server);
				continue;
			}
			take(server, connection);
			if (server->config.frame_bytes)
				pump_frames(server, connection);
			else
				pump(server, connection);
		}
		free_gone(server);
	}
	return server->failed ? "failed" : "done";
}

int main(int argc, char **argv)
{
	static struct server server;
	struct flow *flow = &server.flow;
	const char *reason = "failed";
	int status = web_config_read(&server.config, ROLE_SERVER, argc, argv);

	if (status >= 0)
		return status;
	flow->config = &server.config.transport;
	flow->role = ROLE_RECEIVER;
	flow->fd = flow->listen_fd = -1;
	flow->ops = transport_of(flow->config);
	server.sctp = config_protocol(flow->config) == PROTOCOL_SCTP;
	ndjson_init(&flow->out, STDOUT_FILENO);
	web_config_write(&server.config, ROLE_SERVER, &flow->out);
	server.buffer_bytes =
	    server.sctp && !server.config.message_bytes ? PATTERN_MESSAGE_MAX : BUFFER_BYTES;
	if (server.buffer_bytes < (size_t)server.config.message_bytes)
		server.buffer_bytes = (size_t)server.config.message_bytes;
	server.buffer = malloc(server.buffer_bytes);
	if (!server.buffer || clock_timerslack() || web_waiter_open(&server.waiter))
		flow_error(flow, "setup", errno, NULL);
	else
		reason = serve(&server);
	ndjson_begin(&flow->out, "summary");
	ndjson_int(&flow->out, "t_ns", clock_monotonic_ns());
	ndjson_uint(&flow->out, "connections", server.connections);
	ndjson_uint(&flow->out, "closed", server.closed);
	ndjson_uint(&flow->out, "requests", server.requests);
	ndjson_uint(&flow->out, "sent_bytes", server.sent_bytes);
	while (server.open)
		drop(&server, server.open);
	free_gone(&server);
	flow->ops->close(flow, false);
	ndjson_str(&flow->out, "reason", reason);
	ndjson_int(&flow->out, "status", flow->status);
	ndjson_end(&flow->out);
	free(server.buffer);
	web_waiter_close(&server.waiter);
	return flow_exit(flow);
}
