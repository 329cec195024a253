// SPDX-License-Identifier: Apache-2.0
/* Documented in exchange.h. */
#include "exchange.h"

#include "clock.h"

#include <errno.h>
#include <sys/epoll.h>

/* Between two clock reads, when the kernel takes payload without end. */
#define CHECK_BATCHES 4

enum ending exchange_fail(struct sender *sender, const char *what, int error, const char *detail)
{
	flow_error(&sender->flow, what, error, detail);
	return END_FAILED;
}

/* The end of the flow that a result of sending or receiving means. */
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
		return exchange_fail(sender, "epoll", errno, NULL);
	if (result & WAIT_DOWN)
		return END_DOWN;
	if (result & WAIT_TIME)
		ending = sender_act(sender, clock_monotonic_ns());
	if (ending != NOT_ENDED || !(result & WAIT_STOPPED))
		return ending;
	/* a cell that ends at the very instant of stop sends SIGTERM then: that is a stop */
	return sender->sending && clock_monotonic_ns() >= sender->stop_ns ? END_STOP : END_TERMINATED;
}

/* Messages that answer the peer's become due by what has arrived of these. */
static void peer_sent(struct flow *flow)
{
	uint64_t whole;

	if (!schedule_waits(&flow->schedule))
		return;
	whole = flow->account.byte_stream ? message_list_whole(&flow->peer, flow->account.unique_bytes)
					  : flow->account.complete;
	schedule_peer(&flow->schedule, whole, flow->read_ns);
}

enum ending exchange_receive(struct sender *sender)
{
	enum flow_io io = FLOW_MORE;

	if (!(sender->flow.waiter.events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)))
		return NOT_ENDED;
	while (io == FLOW_MORE)
		io = sender->flow.ops->recv(&sender->flow);
	peer_sent(&sender->flow);
	return ending_of(io);
}

/* The number of bytes of the flow that may have been handed over by now. */
static uint64_t bytes_due(struct sender *sender, uint64_t limit)
{
	struct schedule *schedule = &sender->flow.schedule;
	uint64_t bytes = schedule_timed(schedule) ? schedule_due(schedule, clock_monotonic_ns()) : limit;

	return bytes < limit ? bytes : limit;
}

enum ending exchange_payload(struct sender *sender)
{
	struct flow *flow = &sender->flow;
	int64_t total = flow->config->total_bytes;
	uint64_t limit = total == OPTION_NOT_GIVEN ? UINT64_MAX : (uint64_t)total;
	enum ending ending = NOT_ENDED;
	unsigned int batches = 0;
	enum flow_io io;

	sender->sending = true;
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
			ending = exchange_receive(sender);
	}
	return ending;
}

/* Wait and take what arrives, once. */
static enum ending wait_and_receive(struct sender *sender)
{
	enum ending ending = wait_for_event(sender);

	return ending == NOT_ENDED ? exchange_receive(sender) : ending;
}

enum ending exchange_await_peer(struct sender *sender)
{
	const struct flow *flow = &sender->flow;
	int64_t total = flow->config->peer_total_bytes;
	enum ending ending = NOT_ENDED;

	sender->sent_all = true;
	while (ending == NOT_ENDED && total != OPTION_NOT_GIVEN &&
	       flow->account.unique_bytes < (uint64_t)total)
		ending = wait_and_receive(sender);
	return ending == NOT_ENDED ? END_TOTAL : ending;
}

enum ending exchange_take_arrived(struct sender *sender)
{
	enum ending ending;

	sender->flow.waiter.events |= EPOLLIN;
	ending = exchange_receive(sender);
	return ending == NOT_ENDED ? END_STOP : ending;
}

enum ending exchange_await_end(struct sender *sender)
{
	enum ending ending = NOT_ENDED;

	sender->sending = false;
	while (ending == NOT_ENDED)
		ending = wait_and_receive(sender);
	return ending;
}

enum ending exchange_drain(struct sender *sender)
{
	enum ending ending = NOT_ENDED;

	if (sender->flow.ops->shutdown(&sender->flow))
		return END_FAILED;
	while (ending == NOT_ENDED) {
		/* at every event: the transport may want to read its counters before they vanish */
		sender->flow.waiter.events |= EPOLLIN;
		ending = exchange_receive(sender);
		if (ending == NOT_ENDED)
			ending = wait_for_event(sender);
	}
	return ending;
}
