// SPDX-License-Identifier: Apache-2.0
#include "web_requests.h"

#include "clock.h"

#include <errno.h>
#include <sys/socket.h>

void web_fail(struct client *client, const char *what, int error, const char *detail)
{
	flow_error(client->flow, what, error, detail);
	client->failed = true;
}

int web_open_connection(struct client *client, unsigned int number)
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
		web_fail(client, "page options", errno,
			 client->config.interleave ? "I-DATA needs net.sctp.intl_enable = 1" : NULL);
		return -1;
	}
	if (flow->ops->connect(flow)) {
		client->failed = true;
		return -1;
	}
	if (web_waiter_add(&client->waiter, flow->fd, connection)) {
		web_fail(client, "epoll", errno, NULL);
		return -1;
	}
	if (getsockname(flow->fd, &local.any, &len) == 0)
		connection->port = address_port(&local.any);
	if (number >= client->used)
		client->used = number + 1;
	client->opened++;
	return 0;
}

void web_close_all(struct client *client)
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
		web_fail(client, "request", errno, "the kernel did not take it whole");
}

void web_request_assigned(struct client *client, struct connection *connection)
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

void web_assign(struct connection *connection, unsigned int number)
{
	connection->asked[connection->count++] = (uint16_t)number;
}

void web_request_objects(struct client *client)
{
	unsigned int wanted = (unsigned int)client->config.connections, i;

	if (client->next > 1)
		return;
	client->next = client->next ? client->next : 1;
	if (wanted > client->last - 1)
		wanted = client->last - 1;
	for (i = client->used; i < wanted; i++)
		if (web_open_connection(client, i))
			return;
	if (client->config.serial) {
		for (i = 0; i < wanted && client->next < client->last; i++)
			web_assign(&client->connections[i], client->next++);
	} else {
		for (; client->next < client->last; client->next++)
			web_assign(&client->connections[(client->next - 1) % (wanted ? wanted : 1)],
				   client->next);
	}
	for (i = 0; i < client->used; i++)
		web_request_assigned(client, &client->connections[i]);
}
