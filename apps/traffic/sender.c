// SPDX-License-Identifier: Apache-2.0
/* sender: one flow of checkable payload, from T0 + start until a time or a number of bytes. */
#include "clock.h"
#include "transport.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* A timeline event of the same instant comes first (docs/formats.md). */
#define GAVE_UP		  "gave_up"
#define AFTER_TIMELINE_NS 1000
/* Between two clock reads, when the kernel takes payload without end. */
#define CHECK_BATCHES 4

struct sender {
	struct flow flow;
	const char *reason;
	int64_t start_ns, stop_ns; /* CLOCK_MONOTONIC; stop_ns: WAIT_NEVER without --stop-ns */
	int64_t next_sample_ns, next_check_ns;
	unsigned int next_switch;
	bool connected, drained;
	uint64_t upto;	    /* bytes that may be handed over now */
	int64_t blocked_ns; /* since when the kernel has no room for what is due; 0: it has */
	uint64_t acknowledged;
	int64_t progress_ns; /* when `acknowledged` was last seen to grow */
};

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

static void sample(struct sender *sender, int64_t now)
{
	struct flow *flow = &sender->flow;

	ndjson_begin(&flow->out, "sample");
	ndjson_int(&flow->out, "t_ns", now);
	ndjson_uint(&flow->out, "sent_bytes", flow->sent_bytes);
	flow->ops->sample(flow);
	ndjson_end(&flow->out);
}

/* Has anything been acknowledged within the stall deadline? Asked eight times within it. */
static bool stalled(struct sender *sender, int64_t now)
{
	int64_t deadline = sender->flow.config->stall_deadline_ns;
	uint64_t acknowledged;

	sender->next_check_ns = now + deadline / 8 + 1;
	if (sender->flow.ops->progress(&sender->flow, &acknowledged) &&
	    acknowledged != sender->acknowledged) {
		sender->acknowledged = acknowledged;
		sender->progress_ns = now;
	}
	return now - sender->progress_ns >= deadline;
}

/* What is due at `now`. True when the flow has to end; `sending` says whether stop counts. */
static bool act(struct sender *sender, int64_t now, bool sending)
{
	const struct timed_address_list *list = &sender->flow.config->switch_primary;
	int64_t interval = sender->flow.config->sample_interval_ns;

	if (sending && now >= sender->stop_ns) {
		sender->reason = "stop";
		return true;
	}
	for (; switch_at(sender) <= now; sender->next_switch++)
		make_primary(sender, &list->items[sender->next_switch], list->at_ns[sender->next_switch]);
	if (now >= sender->next_sample_ns) {
		sample(sender, now);
		while (sender->next_sample_ns <= now)
			sender->next_sample_ns += interval;
	}
	if (now >= sender->next_check_ns && stalled(sender, now)) {
		sender->reason = "stalled";
		flow_error(&sender->flow, "stall", ETIMEDOUT,
			   "nothing was acknowledged for --stall-deadline-ns");
		return true;
	}
	return false;
}

/* When more payload is due than the kernel has taken; what waits for room waits for the socket. */
static int64_t next_due(const struct sender *sender)
{
	const struct flow *flow = &sender->flow;

	if (!flow->schedule.interval_ns || flow->sent_bytes < sender->upto)
		return WAIT_NEVER;
	return schedule_next(&flow->schedule, flow->sent_bytes);
}

/* `blocked` and `unblocked` records: a schedule that the kernel holds up. */
static void tell_blocked(struct sender *sender, bool blocked)
{
	struct flow *flow = &sender->flow;
	int64_t now;

	if (!flow->schedule.interval_ns || blocked == (sender->blocked_ns != 0))
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

static bool failed(struct sender *sender, const char *what, int error, const char *detail)
{
	sender->reason = "failed";
	flow_error(&sender->flow, what, error, detail);
	return false;
}

/* Block until something is to do. False when the flow has to end. */
static bool wait_more(struct sender *sender, bool sending)
{
	int64_t until = min(min(switch_at(sender), sender->next_sample_ns), sender->next_check_ns);
	int result;

	if (sending)
		until = min(until, min(sender->stop_ns, next_due(sender)));
	result = waiter_wait(&sender->flow.waiter, until);
	if (result < 0)
		return failed(sender, "epoll", errno, NULL);
	if (result & WAIT_TIME && act(sender, clock_monotonic_ns(), sending))
		return false;
	if (!(result & WAIT_STOPPED))
		return true;
	/* a cell that ends at the very instant of stop sends SIGTERM then: that is a stop */
	sender->reason = sending && clock_monotonic_ns() >= sender->stop_ns ? "stop" : "terminated";
	return false;
}

/* Take what the kernel has to say. False when the association is over. */
static bool listen_to_kernel(struct sender *sender)
{
	enum flow_io io = FLOW_MORE;

	if (!(sender->flow.waiter.events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)))
		return true;
	while (io == FLOW_MORE)
		io = sender->flow.ops->recv(&sender->flow);
	if (io == FLOW_CLOSED)
		sender->reason = "peer_closed";
	else if (io == FLOW_ABORTED)
		sender->reason = "peer_aborted";
	else if (io == FLOW_GAVE_UP)
		sender->reason = GAVE_UP;
	else if (io == FLOW_FAILED)
		sender->reason = "failed";
	return io == FLOW_WAIT;
}

static bool wait_connected(struct sender *sender)
{
	struct flow *flow = &sender->flow;
	int64_t deadline = flow->config->connect_deadline_ns;
	int64_t until = deadline ? sender->start_ns + deadline : WAIT_NEVER;
	enum flow_io io;
	int result;

	for (;;) {
		result = waiter_wait(&flow->waiter, min(until, sender->stop_ns));
		if (result < 0)
			return failed(sender, "epoll", errno, NULL);
		if (result & WAIT_TIME)
			return failed(sender, "connect", ETIMEDOUT,
				      sender->stop_ns <= until
					  ? "not connected before --stop-ns"
					  : "not connected within --connect-deadline-ns");
		if (result & WAIT_STOPPED) {
			sender->reason = "terminated";
			return false;
		}
		io = flow->ops->connected(flow);
		if (io == FLOW_FAILED || !listen_to_kernel(sender))
			return false;
		if (io == FLOW_DONE)
			return true;
	}
}

static bool start(struct sender *sender)
{
	struct flow *flow = &sender->flow;
	int64_t now;
	int result;

	do {
		result = waiter_wait(&flow->waiter, sender->start_ns);
		if (result < 0)
			return failed(sender, "epoll", errno, NULL);
		if (result & WAIT_STOPPED) {
			sender->reason = "terminated";
			return false;
		}
	} while (!(result & WAIT_TIME));
	now = clock_monotonic_ns();
	if (flow->ops->connect(flow))
		return false;
	/* only now: a socket that is neither connected nor connecting counts as hung up */
	if (waiter_watch(&flow->waiter, flow->fd, true))
		return failed(sender, "epoll", errno, NULL);
	ndjson_begin(&flow->out, "start");
	ndjson_int(&flow->out, "t_ns", now);
	ndjson_int(&flow->out, "late_ns", now - sender->start_ns);
	ndjson_int(&flow->out, "t0_monotonic_ns", flow->t0_ns);
	ndjson_end(&flow->out);
	return wait_connected(sender);
}

/* How many bytes of the flow may be with the kernel now. */
static uint64_t due(const struct sender *sender, uint64_t limit)
{
	const struct schedule *schedule = &sender->flow.schedule;
	uint64_t bytes = schedule->interval_ns ? schedule_due(schedule, clock_monotonic_ns()) : limit;

	return bytes < limit ? bytes : limit;
}

/* Hand over payload until all of it is with the kernel, the time is over or the peer is gone. */
static bool send_all(struct sender *sender)
{
	struct flow *flow = &sender->flow;
	int64_t total = flow->config->total_bytes;
	uint64_t limit = total == OPTION_NOT_GIVEN ? UINT64_MAX : (uint64_t)total;
	unsigned int batches = 0;
	enum flow_io io;

	for (;;) {
		sender->upto = due(sender, limit);
		io = flow->sent_bytes < sender->upto ? flow->ops->send(flow, sender->upto) : FLOW_WAIT;
		if (io == FLOW_DONE && sender->upto == limit) {
			sender->reason = "total";
			return true;
		}
		if (io == FLOW_FAILED || io == FLOW_ABORTED || io == FLOW_GAVE_UP) {
			sender->reason = io == FLOW_FAILED    ? "failed"
					 : io == FLOW_GAVE_UP ? GAVE_UP
							      : "peer_aborted";
			return false;
		}
		if (io == FLOW_MORE) {
			if (++batches % CHECK_BATCHES == 0 && act(sender, clock_monotonic_ns(), true))
				return true;
			continue;
		}
		tell_blocked(sender, flow->sent_bytes < sender->upto);
		if (io == FLOW_DONE)
			continue;
		if (!wait_more(sender, true))
			return strcmp(sender->reason, "stop") == 0;
		if (!listen_to_kernel(sender))
			return false;
	}
}

/* After shutdown: until the peer has closed too. */
static bool drain(struct sender *sender)
{
	const char *why = sender->reason;

	if (sender->flow.ops->shutdown(&sender->flow)) {
		sender->reason = "failed";
		return false;
	}
	/* at every event: the transport may want to read its counters before they vanish */
	while (sender->flow.waiter.events |= EPOLLIN, listen_to_kernel(sender))
		if (!wait_more(sender, false))
			return false;
	if (strcmp(sender->reason, "peer_closed") != 0)
		return false;
	sender->reason = why;
	sender->drained = true;
	return true;
}

/* True when the flow did what it was asked to, up to its orderly end. */
static bool run(struct sender *sender)
{
	struct flow *flow = &sender->flow;
	const struct config *config = flow->config;

	sender->reason = "failed";
	if (flow->ops->open(flow) || !start(sender))
		return false;
	sender->progress_ns = clock_monotonic_ns();
	sender->connected = true;
	flow_connected(flow, sender->progress_ns);
	schedule_begin(&flow->schedule, sender->start_ns, sender->progress_ns);
	schedule_write(&flow->schedule, &flow->out);
	/* the grid counts from the start; what fell into the handshake is left out */
	while (sender->next_sample_ns <= sender->progress_ns)
		sender->next_sample_ns += config->sample_interval_ns;
	if (config->stall_deadline_ns)
		sender->next_check_ns = sender->progress_ns + config->stall_deadline_ns / 8 + 1;
	if (config->primary.count)
		make_primary(sender, &config->primary.items[0], OPTION_NOT_GIVEN);
	if (!send_all(sender))
		return false;
	return strcmp(config->close, "graceful") != 0 || drain(sender);
}

/* The summary; between its counters and its end the connection is closed, so the counters are the last ones.
 */
static void finish(struct sender *sender)
{
	struct flow *flow = &sender->flow;
	bool abort = !sender->drained;

	ndjson_begin(&flow->out, "summary");
	ndjson_int(&flow->out, "t_ns", clock_monotonic_ns());
	ndjson_uint(&flow->out, "sent_bytes", flow->sent_bytes);
	ndjson_uint(&flow->out, "messages", schedule_messages(&flow->schedule, flow->sent_bytes));
	ndjson_object_begin(&flow->out, "kernel");
	if (sender->connected)
		flow->ops->counters(flow);
	ndjson_object_end(&flow->out);
	flow->ops->close(flow, abort);
	ndjson_str(&flow->out, "reason", sender->reason);
	ndjson_int(&flow->out, "status", flow->status);
	ndjson_end(&flow->out);
}

int main(int argc, char **argv)
{
	struct config config;
	struct sender sender = {.flow = {.config = &config, .role = ROLE_SENDER, .fd = -1, .listen_fd = -1}};
	struct flow *flow = &sender.flow;
	int status = config_read(&config, ROLE_SENDER, argc, argv);

	if (status >= 0)
		return status;
	flow->ops = transport_of(&config);
	schedule_init(&flow->schedule, &config);
	ndjson_init(&flow->out, STDOUT_FILENO);
	config_write(&config, ROLE_SENDER, &flow->out);
	flow->t0_ns = config.t0_realtime_ns + clock_monotonic_offset_ns();
	sender.start_ns = flow->t0_ns + config.start_ns + AFTER_TIMELINE_NS;
	sender.stop_ns = config.stop_ns == OPTION_NOT_GIVEN ? WAIT_NEVER : flow->t0_ns + config.stop_ns;
	sender.next_sample_ns =
	    config.sample_interval_ns ? sender.start_ns + config.sample_interval_ns : WAIT_NEVER;
	sender.next_check_ns = WAIT_NEVER;
	if (clock_timerslack() || waiter_open(&flow->waiter))
		flow_error(flow, "setup", errno, NULL);
	else if (!run(&sender) && flow->status == 0 && strcmp(sender.reason, "terminated") != 0 &&
		 strcmp(sender.reason, GAVE_UP) != 0)
		flow->status = 1;
	finish(&sender);
	waiter_close(&flow->waiter);
	return flow_exit(flow);
}
