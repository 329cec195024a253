// SPDX-License-Identifier: Apache-2.0
/* Documented in forward.h. */
#include "forward.h"

#include "clock.h"
#include "failure.h"
#include "ndjson.h"
#include "queue.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define EXIT_UNSUPPORTED 77

struct state {
	const struct forward *forward;
	struct agent *agent;
	const struct agent_kind *kind;
	struct ndjson *out;
	int queue, raw, signals;
	int64_t now_ns;
	int error; /* errno of a verdict that could not be given, else 0 */
};

static void send_packet(struct agent *agent, const uint8_t *data, size_t len)
{
	const struct state *state = agent->context;
	struct sockaddr_in to = {.sin_family = AF_INET};

	memcpy(&to.sin_addr, data + 16, 4); /* segment_read() has seen a whole header */
	if (sendto(state->raw, data, len, MSG_DONTWAIT, (struct sockaddr *)&to, sizeof(to)) < 0)
		agent->counts.send_errors++;
}

static void write_event(struct agent *agent, const char *what, const struct segment_ends *ends, uint32_t seq,
			int64_t now_ns)
{
	struct state *state = agent->context;
	struct ndjson *out = state->out;

	ndjson_begin(out, what);
	ndjson_int(out, "t_ns", now_ns);
	ndjson_uint(out, "port", ntohs(ends->destination_port));
	ndjson_uint(out, "seq", seq);
	ndjson_uint(out, "suppressed", agent->counts.suppressed);
	ndjson_end(out);
}

static void take(void *context, const struct queued *packet)
{
	struct state *state = context;
	struct agent_counts *counts = &state->agent->counts;
	enum agent_verdict verdict = AGENT_PASS;
	struct segment segment;
	bool down = packet->outdev == state->forward->interface;
	bool up = packet->indev == state->forward->interface;

	counts->packets++;
	if (!packet->whole || down == up || !segment_read(packet->data, packet->len, &segment))
		counts->not_understood++;
	else
		verdict = state->kind->packet(state->agent, down ? FROM_FIXED : FROM_MOBILE, &segment,
					      state->now_ns);
	if (verdict == AGENT_SUPPRESS)
		counts->suppressed++;
	else
		counts->passed++;
	counts->changed += verdict == AGENT_CHANGED;
	if (queue_accept(state->queue, packet->id, verdict == AGENT_CHANGED ? packet->data : NULL,
			 packet->len, verdict == AGENT_SUPPRESS ? SUPPRESSED_MARK : 0) &&
	    !state->error)
		state->error = errno;
}

static void write_counts(struct ndjson *out, const struct agent_counts *counts)
{
	const struct {
		const char *name;
		uint64_t value;
	} rows[] = {
	    {"packets", counts->packets},
	    {"passed", counts->passed},
	    {"not_understood", counts->not_understood},
	    {"suppressed", counts->suppressed},
	    {"changed", counts->changed},
	    {"retransmitted", counts->retransmitted},
	    {"by_duplicates", counts->by_duplicates},
	    {"by_timer", counts->by_timer},
	    {"on_return", counts->on_return},
	    {"made", counts->made},
	    {"uncached", counts->uncached},
	    {"frozen", counts->frozen},
	    {"send_errors", counts->send_errors},
	    {"queue_overflows", counts->queue_overflows},
	};
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		ndjson_uint(out, rows[i].name, rows[i].value);
}

/* The signals that came. False: the agent is to end. */
static bool read_signals(struct state *state)
{
	struct signalfd_siginfo info;

	while (read(state->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGTERM)
			return false;
		if (state->kind->moved)
			state->kind->moved(state->agent, info.ssi_signo == SIGUSR1, state->now_ns);
	}
	return true;
}

static int loop(struct state *state)
{
	struct pollfd fds[] = {{.fd = state->queue, .events = POLLIN},
			       {.fd = state->signals, .events = POLLIN}};
	struct timespec wait;
	int64_t next_ns;
	bool on = true;

	while (on) {
		next_ns = state->kind->next_ns(state->agent);
		wait = clock_timespec(next_ns > state->now_ns ? next_ns - state->now_ns : 0);
		if (ppoll(fds, 2, next_ns == INT64_MAX ? NULL : &wait, NULL) < 0 && errno != EINTR)
			return errno;
		state->now_ns = clock_monotonic_ns(); /* once for all that is there: docs/agents.md, Time */
		if (fds[0].revents &&
		    queue_receive(state->queue, take, state, &state->agent->counts.queue_overflows))
			return errno;
		if (fds[1].revents)
			on = read_signals(state);
		if (state->kind->next_ns(state->agent) <= state->now_ns)
			state->kind->timer(state->agent, state->now_ns);
		if (state->error)
			return state->error;
	}
	return 0;
}

int forward_run(const struct forward *forward, struct agent *agent, const struct agent_kind *kind,
		struct ndjson *out)
{
	struct state state = {
	    .forward = forward, .agent = agent, .kind = kind, .out = out, .raw = -1, .signals = -1};
	int error, status = 1;
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGUSR1);
	sigaddset(&signals, SIGUSR2);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	agent->send = send_packet;
	agent->event = write_event;
	agent->context = &state;
	state.now_ns = clock_monotonic_ns();
	state.queue = queue_open(forward->queue, forward->queue_packets);
	if (state.queue < 0) {
		error = errno;
		failure(out, "this kernel has no netfilter queue (NETFILTER_NETLINK_QUEUE)", error);
		return EXIT_UNSUPPORTED;
	}
	state.raw = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW);
	state.signals = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
	if (state.raw < 0 || state.signals < 0 || kind->begin(agent)) {
		failure(out, "cannot begin", errno);
		goto out;
	}
	ndjson_begin(out, "ready");
	ndjson_int(out, "t_ns", state.now_ns);
	if (ndjson_end(out))
		goto out;
	error = loop(&state);
	if (error)
		failure(out, "the netfilter queue failed", error);
	ndjson_begin(out, "summary");
	ndjson_int(out, "t_ns", state.now_ns);
	write_counts(out, &agent->counts);
	status = ndjson_end(out) || error;
out:
	agent_end(agent);
	if (state.signals >= 0)
		close(state.signals);
	if (state.raw >= 0)
		close(state.raw);
	close(state.queue);
	return status;
}
