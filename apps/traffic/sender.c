// SPDX-License-Identifier: Apache-2.0
/* sender: one flow of checkable payload, from T0 + start until a time or a number of bytes. */
#include "clock.h"
#include "protocols.h"
#include "sender_due.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* Between two clock reads, when the kernel takes payload without end. */
#define CHECK_BATCHES 4

static const char *const ending_names[] = {
    [END_STOP] = "stop",
    [END_TOTAL] = "total",
    [END_TERMINATED] = "terminated",
    [END_GAVE_UP] = "gave_up",
    [END_STALLED] = "stalled",
    [END_PEER_CLOSED] = "peer_closed",
    [END_PEER_ABORTED] = "peer_aborted",
    [END_FAILED] = "failed",
    [END_DOWN] = "down",
};

/* A flow that ends like this did what it was asked to, as far as its network let it. */
static bool ended_well(const struct sender *sender, enum ending ending)
{
	if (sender->flow.config->loss_ends && (ending == END_PEER_ABORTED || ending == END_PEER_CLOSED))
		return true;
	return ending == END_STOP || ending == END_TOTAL || ending == END_TERMINATED || ending == END_GAVE_UP;
}

static enum ending fail(struct sender *sender, const char *what, int error, const char *detail)
{
	flow_error(&sender->flow, what, error, detail);
	return END_FAILED;
}

/* What the result of sending or receiving means for the flow. */
static enum ending ending_of(enum flow_io io)
{
	switch (io) {
	case FLOW_CLOSED:
		return END_PEER_CLOSED;
	case FLOW_ABORTED:
		return END_PEER_ABORTED;
	case FLOW_GAVE_UP:
		return END_GAVE_UP;
	case FLOW_FAILED:
		return END_FAILED;
	case FLOW_WAIT:
	case FLOW_MORE:
	case FLOW_DONE:
		break;
	}
	return NOT_ENDED;
}

/* Block until something is to do, and do what is due. */
static enum ending wait_for_event(struct sender *sender)
{
	int result = waiter_wait(&sender->flow.waiter, sender_next_due(sender));
	enum ending ending = NOT_ENDED;

	if (result < 0)
		return fail(sender, "epoll", errno, NULL);
	if (result & WAIT_DOWN)
		return END_DOWN;
	if (result & WAIT_TIME)
		ending = sender_act(sender, clock_monotonic_ns());
	if (ending != NOT_ENDED || !(result & WAIT_STOPPED))
		return ending;
	/* a cell that ends at the very instant of stop sends SIGTERM then: that is a stop */
	return sender->sending && clock_monotonic_ns() >= sender->stop_ns ? END_STOP : END_TERMINATED;
}

/* Take what has arrived: acknowledgements, notifications, the end of the connection. */
static enum ending receive(struct sender *sender)
{
	enum flow_io io = FLOW_MORE;

	if (!(sender->flow.waiter.events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)))
		return NOT_ENDED;
	while (io == FLOW_MORE)
		io = sender->flow.ops->recv(&sender->flow);
	return ending_of(io);
}

/* Until T0 + --start-ns. */
static enum ending wait_for_start(struct sender *sender)
{
	int result;

	do {
		result = waiter_wait(&sender->flow.waiter, sender->start_ns);
		if (result < 0)
			return fail(sender, "epoll", errno, NULL);
		if (result & WAIT_STOPPED)
			return END_TERMINATED;
		if (result & WAIT_DOWN)
			return END_DOWN;
	} while (!(result & WAIT_TIME));
	return NOT_ENDED;
}

static enum ending wait_connected(struct sender *sender)
{
	struct flow *flow = &sender->flow;
	int64_t deadline = flow->config->connect_deadline_ns;
	int64_t until = deadline ? sender->connect_ns + deadline : WAIT_NEVER;
	enum ending ending;
	enum flow_io io;
	int result;

	for (;;) {
		result = waiter_wait(&flow->waiter, until < sender->stop_ns ? until : sender->stop_ns);
		if (result < 0)
			return fail(sender, "epoll", errno, NULL);
		if (result & WAIT_TIME)
			return fail(sender, "connect", ETIMEDOUT,
				    sender->stop_ns <= until ? "not connected before --stop-ns"
							     : "not connected within --connect-deadline-ns");
		if (result & WAIT_STOPPED)
			return END_TERMINATED;
		if (result & WAIT_DOWN)
			return END_DOWN;
		io = flow->ops->connected(flow);
		if (io == FLOW_FAILED)
			return END_FAILED;
		ending = receive(sender);
		if (ending != NOT_ENDED || io == FLOW_DONE)
			return ending;
	}
}

static enum ending connect_flow(struct sender *sender)
{
	struct flow *flow = &sender->flow;
	int64_t now = clock_monotonic_ns();
	bool first = sender->connect_ns == 0;
	enum ending ending;

	sender->connecting = true;
	sender->connect_ns = first ? sender->start_ns : now;
	if (flow->ops->connect(flow))
		return END_FAILED;
	/* only now: a socket that is neither connected nor connecting counts as hung up */
	if (waiter_watch(&flow->waiter, flow->fd, true))
		return fail(sender, "epoll", errno, NULL);
	ndjson_begin(&flow->out, first ? "start" : "reconnect");
	ndjson_int(&flow->out, "t_ns", now);
	if (first) {
		ndjson_int(&flow->out, "late_ns", now - sender->start_ns);
		ndjson_int(&flow->out, "t0_monotonic_ns", flow->t0_ns);
	}
	ndjson_end(&flow->out);
	ending = wait_connected(sender);
	if (ending != NOT_ENDED)
		return ending;
	sender->connecting = false;
	sender->progress_ns = clock_monotonic_ns();
	flow_connected(flow, sender->progress_ns);
	schedule_begin(&flow->schedule, sender->start_ns, sender->progress_ns);
	schedule_write(&flow->schedule, &flow->out);
	sender_due_begin(sender);
	return NOT_ENDED;
}

/* How many bytes of the flow may have been handed over by now. */
static uint64_t bytes_due(const struct sender *sender, uint64_t limit)
{
	const struct schedule *schedule = &sender->flow.schedule;
	uint64_t bytes = schedule->interval_ns ? schedule_due(schedule, clock_monotonic_ns()) : limit;

	return bytes < limit ? bytes : limit;
}

/* Hand over payload until all of it is with the kernel, the time is over or the peer is gone. */
static enum ending send_payload(struct sender *sender)
{
	struct flow *flow = &sender->flow;
	int64_t total = flow->config->total_bytes;
	uint64_t limit = total == OPTION_NOT_GIVEN ? UINT64_MAX : (uint64_t)total;
	enum ending ending = NOT_ENDED;
	unsigned int batches = 0;
	enum flow_io io;

	while (ending == NOT_ENDED) {
		sender->due_bytes = bytes_due(sender, limit);
		io = flow->sent_bytes < sender->due_bytes ? flow->ops->send(flow, sender->due_bytes)
							  : FLOW_WAIT;
		if (io == FLOW_DONE && sender->due_bytes == limit)
			return END_TOTAL;
		ending = ending_of(io);
		if (ending != NOT_ENDED)
			return ending;
		if (io == FLOW_MORE) {
			if (++batches % CHECK_BATCHES == 0)
				ending = sender_act(sender, clock_monotonic_ns());
			continue;
		}
		sender_record_blocked(sender, flow->sent_bytes < sender->due_bytes);
		if (io == FLOW_DONE)
			continue;
		ending = wait_for_event(sender);
		if (ending == NOT_ENDED)
			ending = receive(sender);
	}
	return ending;
}

/* Close in order: until the peer has closed too, or it cannot. */
static enum ending drain(struct sender *sender)
{
	enum ending ending = NOT_ENDED;

	if (sender->flow.ops->shutdown(&sender->flow))
		return END_FAILED;
	while (ending == NOT_ENDED) {
		/* at every event: the transport may want to read its counters before they vanish */
		sender->flow.waiter.events |= EPOLLIN;
		ending = receive(sender);
		if (ending == NOT_ENDED)
			ending = wait_for_event(sender);
	}
	return ending;
}

/* The phases of a connection in turn, until one of them ends it. */
static enum ending connection(struct sender *sender)
{
	struct flow *flow = &sender->flow;
	enum ending ending = connect_flow(sender), drained;

	if (ending != NOT_ENDED)
		return ending;
	sender->sending = true;
	ending = send_payload(sender);
	sender->sending = false;
	if ((ending != END_TOTAL && ending != END_STOP) || strcmp(flow->config->close, "graceful") != 0)
		return ending;
	drained = drain(sender);
	sender->drained = drained == END_PEER_CLOSED;
	return sender->drained ? ending : drained;
}

/* Whether there is to be another connection. */
static bool goes_on(const struct sender *sender, enum ending ending)
{
	if (ending == END_DOWN)
		return true;
	if (sender->flow.config->reconnect_ns == OPTION_NOT_GIVEN)
		return false;
	return ending == END_PEER_CLOSED || ending == END_PEER_ABORTED || ending == END_GAVE_UP ||
	       ending == END_STALLED || (ending == END_FAILED && sender->connecting);
}

/* Drop a connection and wait until the next is due: NOT_ENDED, or how the flow ends meanwhile. */
static enum ending pause_after(struct sender *sender, enum ending ending)
{
	struct flow *flow = &sender->flow;
	int64_t now = clock_monotonic_ns(), until = now + flow->config->reconnect_ns;
	int result;

	if (until > sender->stop_ns)
		until = sender->stop_ns;
	sender_record_blocked(sender, false);
	ndjson_begin(&flow->out, "lost");
	ndjson_int(&flow->out, "t_ns", now);
	ndjson_str(&flow->out, "reason", ending_names[ending]);
	ndjson_uint(&flow->out, "sent_bytes", flow->sent_bytes);
	ndjson_end(&flow->out);
	flow->ops->close(flow, ending != END_DOWN || waiter_down() == SIGUSR1);
	sender->before_bytes += flow->sent_bytes;
	sender->before_messages += schedule_messages(&flow->schedule, flow->sent_bytes);
	sender->acknowledged = 0;
	flow->sent_bytes = flow->sent_messages = 0;
	flow->established = false;
	/* an attempt that fails is what this sender was told to expect */
	flow->status = 0;
	while (ending == END_DOWN || until > clock_monotonic_ns()) {
		result =
		    ending == END_DOWN ? waiter_until_up(&flow->waiter) : waiter_wait(&flow->waiter, until);
		if (result < 0)
			return fail(sender, "epoll", errno, NULL);
		if (result & WAIT_STOPPED)
			return END_TERMINATED;
		if (ending == END_DOWN)
			break;
		if (result & WAIT_DOWN)
			ending = END_DOWN;
	}
	return clock_monotonic_ns() >= sender->stop_ns ? END_STOP : NOT_ENDED;
}

/* One connection after another, until the flow is over. */
static enum ending run(struct sender *sender)
{
	struct flow *flow = &sender->flow;
	enum ending ending, paused;

	if (flow->ops->open(flow))
		return END_FAILED;
	ending = wait_for_start(sender);
	if (ending == NOT_ENDED)
		ending = connection(sender);
	while (goes_on(sender, ending)) {
		paused = pause_after(sender, ending);
		if (paused != NOT_ENDED)
			return paused;
		sender->connecting = true;
		ending = flow->ops->open(flow) ? END_FAILED : NOT_ENDED;
		if (ending == NOT_ENDED && !sender->connect_ns) /* it went down before its start */
			ending = wait_for_start(sender);
		if (ending == NOT_ENDED)
			ending = connection(sender);
	}
	return ending;
}

/* The summary; between its counters and its end the connection is closed, so the counters are the last ones.
 */
static void finish(struct sender *sender, enum ending ending)
{
	struct flow *flow = &sender->flow;

	ndjson_begin(&flow->out, "summary");
	ndjson_int(&flow->out, "t_ns", clock_monotonic_ns());
	ndjson_uint(&flow->out, "sent_bytes", sender->before_bytes + flow->sent_bytes);
	ndjson_uint(&flow->out, "messages",
		    sender->before_messages + schedule_messages(&flow->schedule, flow->sent_bytes));
	ndjson_object_begin(&flow->out, "kernel");
	if (flow->established)
		flow->ops->counters(flow);
	ndjson_object_end(&flow->out);
	flow->ops->close(flow, !sender->drained);
	ndjson_str(&flow->out, "reason", ending_names[ending]);
	ndjson_int(&flow->out, "status", flow->status);
	ndjson_end(&flow->out);
}

int main(int argc, char **argv)
{
	struct config config;
	struct sender sender = {.flow = {.config = &config, .role = ROLE_SENDER, .fd = -1, .listen_fd = -1}};
	struct flow *flow = &sender.flow;
	enum ending ending;
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
		ending = fail(&sender, "setup", errno, NULL);
	else
		ending = run(&sender);
	if (!ended_well(&sender, ending) && flow->status == 0)
		flow->status = 1;
	finish(&sender, ending);
	waiter_close(&flow->waiter);
	return flow_exit(flow);
}
