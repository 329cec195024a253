// SPDX-License-Identifier: Apache-2.0
/* sender: one flow of checkable payload, from T0 + start until a time or a number of bytes. */
#include "clock.h"
#include "exchange.h"
#include "many.h"
#include "protocols.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

/* Until T0 + --start-ns. */
static enum ending wait_for_start(struct sender *sender)
{
	int result;

	do {
		result = waiter_wait(&sender->flow.waiter, sender->start_ns);
		if (result < 0)
			return exchange_fail(sender, "epoll", errno, NULL);
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
			return exchange_fail(sender, "epoll", errno, NULL);
		if (result & WAIT_TIME)
			return exchange_fail(sender, "connect", ETIMEDOUT,
					     sender->stop_ns <= until
						 ? "not connected before --stop-ns"
						 : "not connected within --connect-deadline-ns");
		if (result & WAIT_STOPPED)
			return END_TERMINATED;
		if (result & WAIT_DOWN)
			return END_DOWN;
		io = flow->ops->connected(flow);
		if (io == FLOW_FAILED)
			return END_FAILED;
		ending = exchange_receive(sender);
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
		return exchange_fail(sender, "epoll", errno, NULL);
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

/* The phases of a connection in turn, until one of them ends it. */
static enum ending connection(struct sender *sender)
{
	struct flow *flow = &sender->flow;
	enum ending ending = connect_flow(sender), drained;

	if (ending != NOT_ENDED)
		return ending;
	ending = exchange_payload(sender);
	if (ending == END_TOTAL && flow->config->duplex)
		ending = exchange_await_peer(sender);
	sender->sending = false;
	if (ending == END_STOP && flow->config->duplex)
		ending = exchange_take_arrived(sender);
	if ((ending != END_TOTAL && ending != END_STOP) || strcmp(flow->config->close, "graceful") != 0)
		return ending;
	drained = exchange_drain(sender);
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
			return exchange_fail(sender, "epoll", errno, NULL);
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
	if (flow->config->duplex) {
		ndjson_object_begin(&flow->out, "arrived");
		flow_write_arrived(flow);
		ndjson_object_end(&flow->out);
	}
	ndjson_object_begin(&flow->out, "kernel");
	if (flow->established)
		flow->ops->counters(flow);
	ndjson_object_end(&flow->out);
	flow->ops->close(flow, !sender->drained);
	ndjson_str(&flow->out, "reason", ending_names[ending]);
	ndjson_int(&flow->out, "status", flow->status);
	ndjson_end(&flow->out);
}

/* One flow, from its options to its summary. Returns the exit status. */
static int send_flow(struct config *config, int out)
{
	struct sender sender = {
	    .flow = {
		.config = config, .role = ROLE_SENDER, .waiter = WAITER_CLOSED, .fd = -1, .listen_fd = -1}};
	struct flow *flow = &sender.flow;
	enum ending ending;

	flow->ops = transport_of(config);
	ndjson_init(&flow->out, out);
	config_write(config, ROLE_SENDER, &flow->out);
	flow->t0_ns = config->t0_realtime_ns + clock_monotonic_offset_ns();
	sender.start_ns = flow->t0_ns + config->start_ns + AFTER_TIMELINE_NS;
	sender.stop_ns = config->stop_ns == OPTION_NOT_GIVEN ? WAIT_NEVER : flow->t0_ns + config->stop_ns;
	sender.next_sample_ns =
	    config->sample_interval_ns ? sender.start_ns + config->sample_interval_ns : WAIT_NEVER;
	sender.next_check_ns = WAIT_NEVER;
	if (flow_read_messages(flow))
		ending = END_FAILED;
	else if (clock_timerslack() || waiter_open(&flow->waiter))
		ending = exchange_fail(&sender, "setup", errno, NULL);
	else
		ending = run(&sender);
	if (!ended_well(&sender, ending) && flow->status == 0)
		flow->status = 1;
	finish(&sender, ending);
	waiter_close(&flow->waiter);
	return flow_exit(flow);
}

int main(int argc, char **argv)
{
	struct config config;
	int status;

	if (many_asked(argc, argv))
		return many_run(argv[2], ROLE_SENDER, send_flow);
	status = config_read(&config, ROLE_SENDER, argc, argv);
	return status >= 0 ? status : send_flow(&config, STDOUT_FILENO);
}
