// SPDX-License-Identifier: Apache-2.0
/* Documented in play.h. */
#include "play.h"

#include "call.h"
#include "clock.h"
#include "guest.h"
#include "report.h"
#include "wire.h"

#include <errno.h>

static struct captured packet;

static void report_packet(const char *record, int event)
{
	struct ndjson *out = report_begin(record, event);

	ndjson_int(out, "t_ns", packet.t_ns);
	report_bytes(out, packet.data, packet.length);
	report_end();
}

/* Takes packets until as many bytes have come as the script expects: one packet of it may come as several. */
static int expect(struct connection *connection, const struct outbound *out, int64_t due_ns, int event)
{
	size_t length = 0;
	bool first = true;

	do {
		if (!wire_next(&packet, due_ns + out->patience_ns)) {
			report_failed(event, "no packet came");
			return -1;
		}
		if (!wire_belongs(connection, &packet)) {
			report_packet("passed", -1);
			continue;
		}
		if (first && out->stamped)
			wire_stamp(connection, &packet, out->stamp);
		first = false;
		report_packet("sent", event);
		length += wire_payload(&packet);
	} while (first || length < out->length);
	return 0;
}

static int carry_out(struct script *script, struct event *event, int64_t due_ns, int number)
{
	struct connection *connection = &script->connections[event->connection];
	struct ndjson *out;
	int status;

	switch (event->kind) {
	case EVENT_SHELL:
		status = guest_shell(event->command);
		out = report_begin("shell", number);
		ndjson_int(out, "status", status);
		report_end();
		return status ? -1 : 0;
	case EVENT_IN:
		return wire_inject(connection, &event->in, script->mss, number);
	case EVENT_OUT:
		return expect(connection, &event->out, due_ns, number);
	case EVENT_CALL:
		call_make(&event->call, number);
		return 0;
	}
	return -1;
}

void play(struct script *script, int *number)
{
	int64_t previous_ns = script->start_ns, now_ns, due_ns;
	struct ndjson *out;
	size_t i;

	while (clock_sleep_until(script->start_ns) == EINTR)
		;
	for (i = 0; i < script->event_count; i++) {
		struct event *event = &script->events[i];

		*number = (int)i;
		now_ns = report_now_ns();
		due_ns = event->time_ns + (event->anchor == ANCHOR_START      ? script->start_ns
					   : event->anchor == ANCHOR_PREVIOUS ? previous_ns
									      : now_ns);
		if (event->kind != EVENT_OUT)
			while (clock_sleep_until(due_ns) == EINTR)
				;
		out = report_begin("event", (int)i);
		ndjson_int(out, "base_ns", now_ns);
		ndjson_int(out, "due_ns", due_ns);
		ndjson_int(out, "t_ns", report_now_ns());
		report_end();
		previous_ns = due_ns;
		if (carry_out(script, event, due_ns, (int)i))
			return;
	}
	call_wait();
}

void play_rest(void)
{
	while (wire_next(&packet, 0))
		report_packet("passed", -1);
}
