// SPDX-License-Identifier: Apache-2.0
/* receiver: takes one connection or association and checks every byte of it. */
#include "bulk.h"
#include "clock.h"
#include "exchange.h"
#include "many.h"
#include "protocols.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

struct receiver {
	struct sender end; /* with --duplex it sends too */
	const char *reason;
	bool connected;
	bool watching; /* the listening socket */
};

static void listening(struct flow *flow)
{
	unsigned int i;

	ndjson_begin(&flow->out, "listening");
	ndjson_int(&flow->out, "t_ns", clock_monotonic_ns());
	ndjson_int(&flow->out, "port", flow->config->port);
	ndjson_array_begin(&flow->out, "local");
	for (i = 0; i < flow->config->bind.count; i++)
		address_write(&flow->out, NULL, &flow->config->bind.items[i].any);
	ndjson_array_end(&flow->out);
	ndjson_end(&flow->out);
}

static bool failed(struct receiver *receiver, const char *what, int error, const char *detail)
{
	receiver->reason = "failed";
	flow_error(&receiver->end.flow, what, error, detail);
	return false;
}

/* Wait for the socket. False when there is nothing more to wait for. */
static bool wait_more(struct receiver *receiver, int64_t until, const char *deadline)
{
	/* a blocking read may have taken the signal that waiter_wait() would wait for */
	int result = waiter_stopped() ? WAIT_STOPPED
		     : waiter_down()  ? WAIT_DOWN
				      : waiter_wait(&receiver->end.flow.waiter, until);

	if (result < 0)
		return failed(receiver, "epoll", errno, NULL);
	if (result & WAIT_SOCKET)
		return true;
	if (result & (WAIT_STOPPED | WAIT_DOWN)) {
		receiver->reason = result & WAIT_STOPPED ? "terminated" : "down";
		return false;
	}
	return failed(receiver, "wait", ETIMEDOUT, deadline);
}

static bool accept_flow(struct receiver *receiver)
{
	struct flow *flow = &receiver->end.flow;
	int64_t deadline = flow->config->connect_deadline_ns;
	int64_t until = deadline ? clock_monotonic_ns() + deadline : WAIT_NEVER;
	enum flow_io io;

	if (!receiver->watching && waiter_watch(&flow->waiter, flow->listen_fd, false))
		return failed(receiver, "epoll", errno, NULL);
	receiver->watching = true;
	do {
		if (!wait_more(receiver, until, "nobody connected within --connect-deadline-ns"))
			return false;
		io = flow->ops->accept(flow);
	} while (io == FLOW_WAIT);
	if (io == FLOW_FAILED)
		return false;
	/* one flow a run: no other connection is accepted */
	if (!flow->ops->listens_on && !flow->config->again) {
		close(flow->listen_fd);
		flow->listen_fd = -1;
	}
	if (waiter_watch(&flow->waiter, flow->fd, flow->config->duplex))
		return failed(receiver, "epoll", errno, NULL);
	receiver->connected = true;
	receiver->end.progress_ns = clock_monotonic_ns();
	flow_connected(flow, receiver->end.progress_ns);
	return true;
}

/* With --again: whether a new connection has taken the place of the one there is. */
static bool taken_over(struct receiver *receiver)
{
	struct flow *flow = &receiver->end.flow;
	int old = flow->fd, new;

	if (!flow->config->again || flow->listen_fd < 0)
		return false;
	new = flow->ops->accept(flow) == FLOW_DONE ? flow->fd : -1;
	flow->fd = old;
	if (new < 0)
		return false;
	flow_abort(flow);
	flow->fd = new;
	account_restart(&flow->account);
	if (waiter_watch(&flow->waiter, flow->fd, false))
		return failed(receiver, "epoll", errno, NULL);
	flow_connected(flow, clock_monotonic_ns());
	return true;
}

/* Read until the association ends. */
static void receive_all(struct receiver *receiver)
{
	struct flow *flow = &receiver->end.flow;
	int64_t deadline = flow->config->stall_deadline_ns;
	int64_t since = clock_monotonic_ns();
	enum flow_io io = FLOW_WAIT;

	while (io == FLOW_WAIT || io == FLOW_MORE) {
		if (flow->last_ns > since)
			since = flow->last_ns;
		if (io == FLOW_WAIT && !wait_more(receiver, deadline ? since + deadline : WAIT_NEVER,
						  "no new payload for --stall-deadline-ns"))
			return;
		if (taken_over(receiver))
			since = clock_monotonic_ns();
		/* the first payload is read at once: its time is recorded */
		if (flow->first_ns && !flow->bulk && flow->ops->reads_in_bulk && !flow->config->read_each &&
		    bulk_begin(flow)) {
			receiver->reason = "failed";
			return;
		}
		io = flow->ops->recv(flow);
	}
	if (io == FLOW_CLOSED)
		receiver->reason = "closed";
	else if (io == FLOW_ABORTED)
		receiver->reason = "peer_aborted";
	else if (io == FLOW_GAVE_UP)
		receiver->reason = "gave_up";
}

/* T0 on CLOCK_REALTIME: by an option, or as the file says that is there once it is known. False after a
 * failure.
 */
static bool read_t0(struct receiver *receiver, int64_t *t0_realtime_ns)
{
	const struct config *config = receiver->end.flow.config;
	long long t0_ns;
	FILE *file;
	int read;

	*t0_realtime_ns = config->t0_realtime_ns;
	if (*t0_realtime_ns == OPTION_NOT_GIVEN && !config->t0_file)
		*t0_realtime_ns = clock_realtime_ns();
	if (*t0_realtime_ns != OPTION_NOT_GIVEN)
		return true;
	file = fopen(config->t0_file, "re");
	if (!file)
		return failed(receiver, "t0-file", errno, config->t0_file);
	read = fscanf(file, "%lld", &t0_ns);
	fclose(file);
	if (read != 1)
		return failed(receiver, "t0-file", 0, "holds no T0");
	*t0_realtime_ns = t0_ns;
	return true;
}

/* Send and receive at once, until the sender ends the connection. */
static void exchange_all(struct receiver *receiver)
{
	static const char *const reasons[] = {
	    [END_TERMINATED] = "terminated",
	    [END_GAVE_UP] = "gave_up",
	    [END_STALLED] = "stalled",
	    [END_PEER_CLOSED] = "closed",
	    [END_PEER_ABORTED] = "peer_aborted",
	    [END_FAILED] = "failed",
	    [END_DOWN] = "down",
	};
	struct sender *end = &receiver->end;
	struct flow *flow = &end->flow;
	const struct config *config = flow->config;
	int64_t t0_realtime_ns;
	enum ending ending;

	if (!read_t0(receiver, &t0_realtime_ns))
		return;
	flow->t0_ns = t0_realtime_ns + clock_monotonic_offset_ns();
	end->start_ns = flow->t0_ns + config->start_ns + AFTER_TIMELINE_NS;
	end->stop_ns = config->stop_ns == OPTION_NOT_GIVEN ? WAIT_NEVER : flow->t0_ns + config->stop_ns;
	end->next_sample_ns = end->next_check_ns = WAIT_NEVER;
	schedule_begin(&flow->schedule, end->start_ns, end->progress_ns);
	schedule_write(&flow->schedule, &flow->out);
	sender_due_begin(end);
	ending = exchange_payload(end);
	if (ending == END_TOTAL || ending == END_STOP)
		ending = exchange_await_end(end);
	receiver->reason = reasons[ending];
}

static bool listen_flow(struct receiver *receiver)
{
	struct flow *flow = &receiver->end.flow;

	receiver->reason = "failed";
	if (flow->ops->open(flow) || flow->ops->listen(flow))
		return false;
	receiver->watching = false;
	listening(flow);
	return true;
}

/* As if the host or the process had been killed, until it is started again; then listen as at first. */
static bool restart(struct receiver *receiver)
{
	struct flow *flow = &receiver->end.flow;
	int how = waiter_down(), result;

	ndjson_begin(&flow->out, "down");
	ndjson_int(&flow->out, "t_ns", clock_monotonic_ns());
	ndjson_end(&flow->out);
	flow->ops->close(flow, how == SIGUSR1);
	receiver->connected = false;
	account_restart(&flow->account);
	result = waiter_until_up(&flow->waiter);
	receiver->reason = "terminated";
	if (result < 0)
		return failed(receiver, "epoll", errno, NULL);
	return !result && listen_flow(receiver);
}

/* With --again: close a connection that has ended, for the next. */
static bool next_connection(struct receiver *receiver)
{
	struct flow *flow = &receiver->end.flow;

	if (waiter_down())
		return restart(receiver);
	if (!flow->config->again || flow->status || waiter_stopped() || !receiver->connected)
		return false;
	close(flow->fd);
	flow->fd = -1;
	receiver->connected = false;
	account_restart(&flow->account);
	return true;
}

static void run(struct receiver *receiver)
{
	if (!listen_flow(receiver))
		return;
	do {
		if (accept_flow(receiver) && receiver->end.flow.config->duplex)
			exchange_all(receiver);
		else if (receiver->connected)
			receive_all(receiver);
	} while (next_connection(receiver));
}

static void finish(struct receiver *receiver)
{
	struct flow *flow = &receiver->end.flow;

	if (flow->account.corrupt_bytes && flow->status == 0)
		flow->status = 1;
	ndjson_begin(&flow->out, "summary");
	ndjson_int(&flow->out, "t_ns", clock_monotonic_ns());
	flow_write_arrived(flow);
	if (flow->config->duplex) {
		ndjson_uint(&flow->out, "sent_bytes", flow->sent_bytes);
		ndjson_uint(&flow->out, "messages_sent",
			    schedule_messages(&flow->schedule, flow->sent_bytes));
	}
	ndjson_object_begin(&flow->out, "kernel");
	if (receiver->connected)
		flow->ops->counters(flow);
	ndjson_object_end(&flow->out);
	flow->ops->close(flow, flow->stranger);
	ndjson_uint(&flow->out, "refused", flow->refused);
	ndjson_str(&flow->out, "reason", receiver->reason);
	ndjson_int(&flow->out, "status", flow->status);
	ndjson_end(&flow->out);
}

/* One flow, from its options to its summary. Returns the exit status. */
static int receive_flow(struct config *config, int out)
{
	struct receiver receiver = {
	    .end.flow =
		{.config = config, .role = ROLE_RECEIVER, .waiter = WAITER_CLOSED, .fd = -1, .listen_fd = -1},
	    .reason = "failed",
	};
	struct flow *flow = &receiver.end.flow;

	flow->ops = transport_of(config);
	ndjson_init(&flow->out, out);
	config_write(config, ROLE_RECEIVER, &flow->out);
	if (config->duplex && flow_read_messages(flow))
		goto end;
	if (clock_timerslack() || waiter_open(&flow->waiter))
		flow_error(flow, "setup", errno, NULL);
	else
		run(&receiver);
end:
	finish(&receiver);
	waiter_close(&flow->waiter);
	return flow_exit(flow);
}

int main(int argc, char **argv)
{
	struct config config;
	int status;

	if (many_asked(argc, argv))
		return many_run(argv[2], ROLE_RECEIVER, receive_flow);
	status = config_read(&config, ROLE_RECEIVER, argc, argv);
	return status >= 0 ? status : receive_flow(&config, STDOUT_FILENO);
}
