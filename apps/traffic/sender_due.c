// SPDX-License-Identifier: Apache-2.0
/* Documented in sender_due.h. */
#include "sender_due.h"

#include "clock.h"

#include <errno.h>

static int64_t min(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t switch_at(const struct sender *sender)
{
	const struct timed_address_list *list = &sender->flow.config->switch_primary;

	if (sender->next_switch >= list->count)
		return WAIT_NEVER;
	return sender->flow.t0_ns + list->at_ns[sender->next_switch] + AFTER_TIMELINE_NS;
}

/* A `switch_primary` record; `at_ns` is null for the primary from the start. */
static void make_primary(struct sender *sender, const union address *address, int64_t at_ns)
{
	struct flow *flow = &sender->flow;
	int error = flow->ops->set_primary(flow, address) ? errno : 0;

	ndjson_begin(&flow->out, "switch_primary");
	ndjson_int(&flow->out, "t_ns", clock_monotonic_ns());
	if (at_ns == OPTION_NOT_GIVEN)
		ndjson_null(&flow->out, "at_ns");
	else
		ndjson_int(&flow->out, "at_ns", at_ns);
	address_write(&flow->out, "address", &address->any);
	ndjson_int(&flow->out, "errno", error);
	ndjson_end(&flow->out);
	if (error)
		flow_error(flow, "SCTP_PRIMARY_ADDR", error, NULL);
}

static int64_t heartbeat_at(const struct sender *sender)
{
	const struct heartbeat_list *list = &sender->flow.heartbeats;

	return list->next < list->count ? sender->start_ns + list->items[list->next].at_ns : WAIT_NEVER;
}

/* A `heartbeat` record. An error is no failure: an association that is gone sends none. */
static void send_heartbeat(struct sender *sender)
{
	struct flow *flow = &sender->flow;
	const struct heartbeat *beat = &flow->heartbeats.items[flow->heartbeats.next++];
	int error = flow->ops->heartbeat(flow, &beat->to) ? errno : 0;

	ndjson_begin(&flow->out, "heartbeat");
	ndjson_int(&flow->out, "t_ns", clock_monotonic_ns());
	ndjson_int(&flow->out, "at_ns", beat->at_ns);
	if (beat->to.any.sa_family == AF_UNSPEC)
		ndjson_null(&flow->out, "address");
	else
		address_write(&flow->out, "address", &beat->to.any);
	ndjson_int(&flow->out, "errno", error);
	ndjson_end(&flow->out);
}

static void sample(struct sender *sender, int64_t now)
{
	struct flow *flow = &sender->flow;

	ndjson_begin(&flow->out, "sample");
	ndjson_int(&flow->out, "t_ns", now);
	ndjson_uint(&flow->out, "sent_bytes", sender->before_bytes + flow->sent_bytes);
	flow->ops->sample(flow);
	ndjson_end(&flow->out);
}

/* Whether nothing has been acknowledged within the stall deadline. Checked eight times within it. */
static bool stalled(struct sender *sender, int64_t now)
{
	int64_t deadline = sender->flow.config->stall_deadline_ns;
	uint64_t arrived = sender->flow.account.unique_bytes, acknowledged; /* both are progress */

	sender->next_check_ns = now + deadline / 8 + 1;
	if (sender->flow.ops->progress(&sender->flow, &acknowledged) &&
	    acknowledged + arrived != sender->acknowledged) {
		sender->acknowledged = acknowledged + arrived;
		sender->progress_ns = now;
	}
	return now - sender->progress_ns >= deadline;
}

enum ending sender_act(struct sender *sender, int64_t now)
{
	const struct timed_address_list *list = &sender->flow.config->switch_primary;

	if (sender->sending && now >= sender->stop_ns)
		return END_STOP;
	for (; switch_at(sender) <= now; sender->next_switch++)
		make_primary(sender, &list->items[sender->next_switch], list->at_ns[sender->next_switch]);
	while (heartbeat_at(sender) <= now)
		send_heartbeat(sender);
	if (now >= sender->next_sample_ns) {
		sample(sender, now);
		while (sender->next_sample_ns <= now)
			sender->next_sample_ns += sender->flow.config->sample_interval_ns;
	}
	if (now >= sender->next_check_ns && stalled(sender, now)) {
		flow_error(&sender->flow, "stall", ETIMEDOUT,
			   "nothing was acknowledged for --stall-deadline-ns");
		return END_STALLED;
	}
	return NOT_ENDED;
}

/* The time at which more payload is due than the kernel has taken. Payload that waits for room waits for the
 * socket. */
static int64_t next_payload(const struct sender *sender)
{
	const struct flow *flow = &sender->flow;

	if (!schedule_timed(&flow->schedule) || flow->sent_bytes < sender->due_bytes || sender->sent_all)
		return WAIT_NEVER;
	return schedule_next(&flow->schedule, flow->sent_bytes);
}

int64_t sender_next_due(const struct sender *sender)
{
	int64_t next = min(min(switch_at(sender), sender->next_sample_ns), sender->next_check_ns);

	next = min(next, heartbeat_at(sender));

	return sender->sending ? min(next, min(sender->stop_ns, next_payload(sender))) : next;
}

void sender_record_blocked(struct sender *sender, bool blocked)
{
	struct flow *flow = &sender->flow;
	int64_t now;

	if (!schedule_timed(&flow->schedule) || blocked == (sender->blocked_ns != 0))
		return;
	now = clock_monotonic_ns();
	ndjson_begin(&flow->out, blocked ? "blocked" : "unblocked");
	ndjson_int(&flow->out, "t_ns", now);
	ndjson_uint(&flow->out, "sent_bytes", flow->sent_bytes);
	if (!blocked)
		ndjson_int(&flow->out, "blocked_ns", now - sender->blocked_ns);
	ndjson_end(&flow->out);
	sender->blocked_ns = blocked ? now : 0;
}

void sender_due_begin(struct sender *sender)
{
	const struct config *config = sender->flow.config;

	/* the grid counts from the start; what fell into the handshake is left out */
	while (sender->next_sample_ns <= sender->progress_ns)
		sender->next_sample_ns += config->sample_interval_ns;
	if (config->stall_deadline_ns)
		sender->next_check_ns = sender->progress_ns + config->stall_deadline_ns / 8 + 1;
	if (config->primary.count)
		make_primary(sender, &config->primary.items[0], OPTION_NOT_GIVEN);
}
