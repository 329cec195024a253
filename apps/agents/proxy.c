// SPDX-License-Identifier: Apache-2.0
/*
 * What this does: proxy.h. Sockets are transparent (IP_TRANSPARENT): the listening ones take connections to
 * any address, the onward ones are bound to the address and port of the host that began.
 */
#include "proxy.h"

#include "clock.h"
#include "failure.h"
#include "ndjson.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define RELAYS_MAX 64
#define FIRST	   (1 + NUMBER_LIST_MAX) /* poll's place of the first relay: behind signals and listeners */

/* Bytes from one side on their way to the other. */
struct stream {
	uint8_t *data; /* [begin, end) is still to be written */
	size_t begin, end;
	uint64_t bytes; /* written */
	bool read_all;	/* the side they come from has sent its FIN */
	bool closed;	/* and so has the relay on the other side */
};

struct relay {
	int fd[2]; /* of the host that began, and onward; fd[0] -1: free */
	bool connecting;
	struct stream stream[2]; /* [0]: from fd[0] to fd[1] */
	uint16_t port;
};

struct state {
	const struct proxy *proxy;
	struct ndjson *out;
	int64_t now_ns;
	struct relay relays[RELAYS_MAX];
	uint64_t relayed, refused, largest;
};

static void set(int fd, int level, int option, int value)
{
	(void)setsockopt(fd, level, option, &value, sizeof(value));
}

static int transparent_socket(const struct proxy *proxy, const struct sockaddr_in *address)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1, saved;

	if (fd < 0)
		return -1;
	set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	set(fd, SOL_SOCKET, SO_RCVBUF, (int)proxy->buffer_bytes);
	set(fd, SOL_SOCKET, SO_SNDBUF, (int)proxy->buffer_bytes);
	set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	if (!setsockopt(fd, IPPROTO_IP, IP_TRANSPARENT, &on, sizeof(on)) &&
	    !bind(fd, (const struct sockaddr *)address, sizeof(*address)))
		return fd;
	saved = errno;
	close(fd);
	errno = saved;
	return -1;
}

static void write_relay(struct state *state, const struct relay *relay, const char *what, int error)
{
	struct ndjson *out = state->out;

	ndjson_begin(out, what);
	ndjson_int(out, "t_ns", state->now_ns);
	ndjson_uint(out, "port", relay->port);
	ndjson_uint(out, "onward_bytes", relay->stream[0].bytes);
	ndjson_uint(out, "back_bytes", relay->stream[1].bytes);
	ndjson_uint(out, "dropped_bytes",
		    relay->stream[0].end - relay->stream[0].begin + relay->stream[1].end -
			relay->stream[1].begin);
	ndjson_str(out, "error", error ? strerror(error) : NULL);
	ndjson_end(out);
}

/* With an error both hosts get a RST: neither may take the end of the relay for the end of the data. */
static void end_relay(struct state *state, struct relay *relay, int error)
{
	struct linger reset = {.l_onoff = 1};
	int i;

	write_relay(state, relay, "closed", error);
	for (i = 0; i < 2; i++) {
		if (relay->fd[i] >= 0 && error)
			(void)setsockopt(relay->fd[i], SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
		if (relay->fd[i] >= 0)
			close(relay->fd[i]);
		free(relay->stream[i].data);
	}
	*relay = (struct relay){.fd = {-1, -1}};
}

/* The onward connection, from the host that began to the one it meant. */
static int connect_onward(const struct proxy *proxy, const struct sockaddr_in *from,
			  const struct sockaddr_in *to)
{
	int fd = transparent_socket(proxy, from), saved;

	if (fd < 0)
		return -1;
	if (proxy->congestion && setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, proxy->congestion,
					    (socklen_t)strlen(proxy->congestion)))
		goto failed;
	if (connect(fd, (const struct sockaddr *)to, sizeof(*to)) && errno != EINPROGRESS)
		goto failed;
	return fd;
failed:
	saved = errno;
	close(fd);
	errno = saved;
	return -1;
}

static struct relay *free_relay(struct state *state)
{
	size_t i;

	for (i = 0; i < RELAYS_MAX; i++)
		if (state->relays[i].fd[0] < 0)
			return &state->relays[i];
	return NULL;
}

static void begin_relay(struct state *state, int listener)
{
	struct relay *relay = free_relay(state);
	struct sockaddr_in from, to;
	socklen_t from_len = sizeof(from), to_len = sizeof(to);
	int fd = accept4(listener, (struct sockaddr *)&from, &from_len, SOCK_NONBLOCK | SOCK_CLOEXEC), i;
	size_t bytes = (size_t)state->proxy->buffer_bytes;

	if (fd < 0)
		return;
	if (!relay || getsockname(fd, (struct sockaddr *)&to, &to_len)) {
		state->refused++;
		close(fd);
		return;
	}
	*relay = (struct relay){.fd = {fd, -1}, .connecting = true, .port = ntohs(to.sin_port)};
	relay->fd[1] = connect_onward(state->proxy, &from, &to);
	if (relay->fd[1] < 0) {
		end_relay(state, relay, errno);
		return;
	}
	for (i = 0; i < 2; i++)
		relay->stream[i].data = malloc(bytes);
	if (!relay->stream[0].data || !relay->stream[1].data) {
		end_relay(state, relay, ENOMEM);
		return;
	}
	state->relayed++;
	write_relay(state, relay, "accepted", 0);
}

/* Move what can be moved from side `from` to the other. Returns 0, or the errno that ends the relay. */
static int move(struct state *state, struct relay *relay, int from)
{
	struct stream *stream = &relay->stream[from];
	size_t size = (size_t)state->proxy->buffer_bytes;
	bool moved = true;
	ssize_t n;

	while (moved && !stream->closed) {
		moved = false;
		if (!stream->read_all && stream->end < size) {
			n = read(relay->fd[from], stream->data + stream->end, size - stream->end);
			if (n < 0 && errno != EAGAIN)
				return errno;
			stream->read_all = n == 0;
			stream->end += n > 0 ? (size_t)n : 0;
			moved = n >= 0;
		}
		if (stream->end - stream->begin > state->largest)
			state->largest = stream->end - stream->begin;
		if (stream->end > stream->begin && !relay->connecting) {
			n = send(relay->fd[1 - from], stream->data + stream->begin,
				 stream->end - stream->begin, MSG_NOSIGNAL);
			if (n < 0 && errno != EAGAIN)
				return errno;
			stream->begin += n > 0 ? (size_t)n : 0;
			stream->bytes += n > 0 ? (uint64_t)n : 0;
			moved |= n > 0;
		}
		if (stream->begin == stream->end)
			stream->begin = stream->end = 0;
		else if (stream->begin >= size / 2) { /* room again without a copy for every read */
			memmove(stream->data, stream->data + stream->begin, stream->end - stream->begin);
			stream->end -= stream->begin;
			stream->begin = 0;
		}
		if (stream->read_all && stream->end == 0 && !relay->connecting) {
			(void)shutdown(relay->fd[1 - from], SHUT_WR);
			stream->closed = true;
		}
	}
	return 0;
}

static void serve(struct state *state, struct relay *relay, short onward_events)
{
	socklen_t len = sizeof(int);
	int error = 0;

	if (relay->connecting && onward_events) {
		(void)getsockopt(relay->fd[1], SOL_SOCKET, SO_ERROR, &error, &len);
		relay->connecting = false;
	}
	if (!error)
		error = move(state, relay, 0);
	if (!error && !relay->connecting)
		error = move(state, relay, 1);
	if (error || (relay->stream[0].closed && relay->stream[1].closed))
		end_relay(state, relay, error);
}

/* The poll events to wait for at one side of a relay. */
static short events(const struct state *state, const struct relay *relay, int side)
{
	const struct stream *in = &relay->stream[side], *out = &relay->stream[1 - side];
	bool read = !in->read_all && in->end < (size_t)state->proxy->buffer_bytes;
	bool written = out->end > out->begin;

	if (side == 1 && relay->connecting)
		return POLLOUT;
	return (short)((read ? POLLIN : 0) | (written ? POLLOUT : 0));
}

static int loop(struct state *state, struct pollfd *fds, size_t listeners)
{
	size_t i, side, count = FIRST + 2 * RELAYS_MAX;

	for (;;) {
		for (i = 0; i < RELAYS_MAX; i++)
			for (side = 0; side < 2; side++) {
				struct pollfd *one = &fds[FIRST + 2 * i + side];

				one->events = state->relays[i].fd[0] < 0
						  ? 0
						  : events(state, &state->relays[i], (int)side);
				one->fd = one->events ? state->relays[i].fd[side] : -1;
				one->revents = 0;
			}
		if (poll(fds, count, -1) < 0 && errno != EINTR)
			return errno;
		state->now_ns = clock_monotonic_ns();
		if (fds[0].revents)
			return 0;
		for (i = 0; i < RELAYS_MAX; i++)
			if (fds[FIRST + 2 * i].revents || fds[FIRST + 2 * i + 1].revents)
				serve(state, &state->relays[i], fds[FIRST + 2 * i + 1].revents);
		for (i = 0; i < listeners; i++)
			if (fds[1 + i].revents)
				begin_relay(state, fds[1 + i].fd);
	}
}

int proxy_run(const struct proxy *proxy, struct ndjson *out)
{
	static struct pollfd fds[FIRST + 2 * RELAYS_MAX];
	static struct state state;
	struct sockaddr_in any = {.sin_family = AF_INET};
	sigset_t signals;
	size_t i;
	int error;

	state = (struct state){.proxy = proxy, .out = out};
	for (i = 0; i < FIRST; i++)
		fds[i] = (struct pollfd){.fd = -1, .events = POLLIN};
	for (i = 0; i < RELAYS_MAX; i++)
		state.relays[i] = (struct relay){.fd = {-1, -1}};
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	fds[0].fd = signalfd(-1, &signals, SFD_CLOEXEC);
	if (fds[0].fd < 0)
		return failure(out, "signalfd", errno);
	for (i = 0; i < proxy->ports.count; i++) {
		any.sin_port = htons((uint16_t)proxy->ports.items[i]);
		fds[1 + i].fd = transparent_socket(proxy, &any);
		if (fds[1 + i].fd < 0 || listen(fds[1 + i].fd, RELAYS_MAX))
			return failure(out, "cannot listen for connections to any address (IP_TRANSPARENT)",
				       errno);
	}
	ndjson_begin(out, "ready");
	ndjson_int(out, "t_ns", clock_monotonic_ns());
	if (ndjson_end(out))
		return 1;
	error = loop(&state, fds, proxy->ports.count);
	if (error)
		return failure(out, "poll", error);
	for (i = 0; i < RELAYS_MAX; i++)
		if (state.relays[i].fd[0] >= 0)
			end_relay(&state, &state.relays[i], ECANCELED);
	ndjson_begin(out, "summary");
	ndjson_int(out, "t_ns", state.now_ns);
	ndjson_uint(out, "relayed", state.relayed);
	ndjson_uint(out, "refused", state.refused);
	ndjson_uint(out, "largest_buffered_bytes", state.largest);
	return ndjson_end(out) ? 1 : 0;
}
