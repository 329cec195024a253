// SPDX-License-Identifier: Apache-2.0
#include "web_objects.h"

#include "../traffic/pattern.h"
#include "clock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "start:bytes,start:bytes": what no other end knows of frames. */
static void report_pieces(struct client *client, const struct object *object)
{
	size_t size = object->pieces_count * sizeof("18446744073709551615:16777215,"), len = 0;
	char *text = malloc(size);
	unsigned int i;

	if (!text) {
		web_fail(client, "memory", ENOMEM, NULL);
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
		web_request_objects(client);
	else if (client->config.serial && client->next < client->last)
		web_assign(connection, client->next++);
	web_request_assigned(client, connection);
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
			web_fail(client, "recvmsg", EPROTO, "more than was asked for");
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
		web_fail(client, "memory", ENOMEM, NULL);
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
					web_fail(client, "recvmsg", EPROTO, "no frame of what was asked for");
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

void web_read_objects(struct client *client, struct connection *connection)
{
	uint16_t stream;
	enum web_io io;
	size_t len;

	while (!client->failed) {
		io = web_read(connection->flow.fd, client->sctp, client->buffer, WEB_BUFFER_BYTES, &len,
			      &stream);
		if (io == WEB_EMPTY)
			return;
		if (io != WEB_DATA) {
			web_fail(client, "recvmsg", io == WEB_CLOSED ? 0 : errno,
				 "the connection ended before the page");
			return;
		}
		if (client->config.frame_bytes)
			received_frames(client, connection, client->buffer, len, clock_monotonic_ns());
		else
			received(client, connection, client->buffer, len, stream, clock_monotonic_ns());
	}
}

void web_forget_objects(struct client *client)
{
	unsigned int i;

	for (i = 0; i < WEB_OBJECTS_MAX; i++)
		free(client->objects[i].pieces);
	memset(client->objects, 0, sizeof(client->objects));
}
