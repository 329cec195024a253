// SPDX-License-Identifier: Apache-2.0
/* web-client: fetches pages, one after the other, and reports when each object of them was there. */
#include "../traffic/protocols.h"
#include "../traffic/sender_due.h"
#include "clock.h"
#include "web_objects.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

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
			web_fail(client, "page options", errno, "I-DATA is not in force");
			return;
		}
		if (client->pages == 0 && connection->number == 0)
			flow_connected(&connection->flow, clock_monotonic_ns());
	}
	web_request_assigned(client, connection);
	if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		web_read_objects(client, connection);
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
			web_fail(client, "epoll", errno, NULL);
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

	web_forget_objects(client);
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
	if (!client->used && web_open_connection(client, 0))
		return;
	if (!html) {
		web_request_objects(client);
		return;
	}
	web_assign(&client->connections[0], 0);
	web_request_assigned(client, &client->connections[0]);
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
			web_close_all(client);
	}
	web_close_all(client);
	if (client->corrupt_bytes)
		web_fail(client, "content", 0, "bytes differ from what was asked for");
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
		if (flow_read_messages(&client.connections[i].flow))
			return 1;
		ndjson_init(&client.connections[i].flow.out, STDOUT_FILENO);
	}
	client.flow = &client.connections[0].flow;
	web_config_write(&client.config, ROLE_CLIENT, &client.flow->out);
	t0_ns = client.config.transport.t0_realtime_ns + clock_monotonic_offset_ns();
	client.buffer = malloc(WEB_BUFFER_BYTES);
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
	web_forget_objects(&client);
	web_waiter_close(&client.waiter);
	for (i = 1; i < WEB_CONNECTIONS_MAX; i++)
		ndjson_free(&client.connections[i].flow.out);
	return flow_exit(client.flow);
}
