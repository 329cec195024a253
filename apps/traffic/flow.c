// SPDX-License-Identifier: Apache-2.0
/* Documented in transport.h. */
#include "transport.h"

#include "clock.h"
#include "pattern.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* Of `corrupt` and of `refused` records; more are only counted: a broken flow must not fill the disk. */
#define MAX_ERROR_RECORDS 16

void flow_connected(struct flow *flow, int64_t t_ns)
{
	flow->established = true;
	ndjson_begin(&flow->out, "connected");
	ndjson_int(&flow->out, "t_ns", t_ns);
	flow->ops->addresses(flow);
	ndjson_end(&flow->out);
	ndjson_begin(&flow->out, "in_force");
	flow->ops->in_force(flow);
	ndjson_end(&flow->out);
}

enum flow_io flow_lost(struct flow *flow, const char *what, int error, const char *detail)
{
	if (error == ECONNRESET || error == EPIPE || error == ESHUTDOWN)
		return FLOW_ABORTED;
	if (error != ETIMEDOUT || !flow->established) {
		flow_error(flow, what, error, detail);
		return FLOW_FAILED;
	}
	ndjson_begin(&flow->out, "gave_up");
	ndjson_int(&flow->out, "t_ns", clock_monotonic_ns());
	ndjson_str(&flow->out, "what", what);
	ndjson_int(&flow->out, "errno", error);
	ndjson_end(&flow->out);
	return FLOW_GAVE_UP;
}

int flow_exit(struct flow *flow)
{
	if (flow->out.error) {
		fprintf(stderr, "stdout: %s\n", strerror(flow->out.error));
		flow->status = flow->status ? flow->status : 1;
	}
	account_free(&flow->account);
	schedule_free(&flow->schedule);
	message_list_free(&flow->peer);
	heartbeat_list_free(&flow->heartbeats);
	ndjson_free(&flow->out);
	return flow->status;
}

static bool kernel_lacks(int error)
{
	return error == EPROTONOSUPPORT || error == EAFNOSUPPORT || error == ESOCKTNOSUPPORT ||
	       error == ENOPROTOOPT || error == EOPNOTSUPP;
}

int flow_error(struct flow *flow, const char *what, int error, const char *detail)
{
	char message[400];

	if (flow->status == 0)
		flow->status = kernel_lacks(error) ? EXIT_CANNOT : 1;
	snprintf(message, sizeof(message), "%s%s%s%s%s", what, error ? ": " : "",
		 error ? strerror(error) : "", detail ? ": " : "", detail ? detail : "");
	ndjson_begin(&flow->out, "error");
	ndjson_int(&flow->out, "t_ns", clock_monotonic_ns());
	ndjson_str(&flow->out, "message", message);
	ndjson_str(&flow->out, "what", what);
	ndjson_int(&flow->out, "errno", error);
	ndjson_end(&flow->out);
	return -1;
}

int flow_set(struct flow *flow, int fd, int level, int option, int value, const char *what)
{
	char detail[100];
	int in_force;

	if (setsockopt(fd, level, option, &value, sizeof(value)) || flow_get(fd, level, option, &in_force))
		return flow_error(flow, what, errno, NULL);
	if (in_force == value)
		return 0;
	snprintf(detail, sizeof(detail), "asked for %d, the kernel has %d", value, in_force);
	return flow_error(flow, what, EINVAL, detail);
}

int flow_get(int fd, int level, int option, int *value)
{
	socklen_t len = sizeof(*value);

	return getsockopt(fd, level, option, value, &len);
}

int flow_buffer(struct flow *flow, int fd, int option, int force_option, int64_t bytes, const char *what)
{
	int value = (int)bytes, in_force;
	char detail[160];

	/* without the capability the plain option does, as far as net.core.[rw]mem_max lets it */
	if (setsockopt(fd, SOL_SOCKET, force_option, &value, sizeof(value)) &&
	    setsockopt(fd, SOL_SOCKET, option, &value, sizeof(value)))
		return flow_error(flow, what, errno, NULL);
	if (flow_get(fd, SOL_SOCKET, option, &in_force))
		return flow_error(flow, what, errno, NULL);
	/* the kernel doubles the value, for its own bookkeeping (socket(7)) */
	if (in_force == 2 * value)
		return 0;
	snprintf(detail, sizeof(detail),
		 "asked for %d bytes, the kernel took %d: it is below the kernel's minimum "
		 "or above net.core.%s_max",
		 value, in_force / 2, option == SO_RCVBUF ? "rmem" : "wmem");
	return flow_error(flow, what, EINVAL, detail);
}

int flow_socket(struct flow *flow, int family, int type, int protocol)
{
	const struct config *config = flow->config;
	int fd = socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol);

	if (fd < 0)
		return flow_error(flow, "socket", errno, flow->ops->name);
	if (config->rcvbuf_bytes != OPTION_NOT_GIVEN &&
	    flow_buffer(flow, fd, SO_RCVBUF, SO_RCVBUFFORCE, config->rcvbuf_bytes, "SO_RCVBUF"))
		goto fail;
	if (config->sndbuf_bytes != OPTION_NOT_GIVEN &&
	    flow_buffer(flow, fd, SO_SNDBUF, SO_SNDBUFFORCE, config->sndbuf_bytes, "SO_SNDBUF"))
		goto fail;
	return fd;
fail:
	close(fd);
	return -1;
}

uint16_t flow_own_port(const struct flow *flow)
{
	if (flow->role == ROLE_RECEIVER)
		return (uint16_t)flow->config->port;
	return flow->config->local_port == OPTION_NOT_GIVEN ? 0 : (uint16_t)flow->config->local_port;
}

int flow_reuse_port(struct flow *flow, int fd)
{
	if (!flow->config->again && flow->config->local_port == OPTION_NOT_GIVEN)
		return 0;
	return flow_set(flow, fd, SOL_SOCKET, SO_REUSEADDR, 1, "SO_REUSEADDR");
}

int flow_listen(struct flow *flow)
{
	if (listen(flow->listen_fd, 1))
		return flow_error(flow, "listen", errno, NULL);
	return 0;
}

void flow_abort(struct flow *flow)
{
	struct linger linger = {.l_onoff = 1, .l_linger = 0};

	setsockopt(flow->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	close(flow->fd);
	flow->fd = -1;
}

static void refuse(struct flow *flow)
{
	if (flow->refused++ < MAX_ERROR_RECORDS) {
		ndjson_begin(&flow->out, "refused");
		ndjson_int(&flow->out, "t_ns", clock_monotonic_ns());
		flow->ops->addresses(flow);
		ndjson_end(&flow->out);
	}
	flow_abort(flow);
}

enum flow_io flow_accept(struct flow *flow)
{
	/* to the last one: the listening socket is edge triggered */
	for (;;) {
		flow->fd = accept4(flow->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (flow->fd < 0 && errno == EINTR)
			continue; /* the process was stopped and goes on */
		if (flow->fd < 0)
			break;
		if (flow->config->peer.count == 0 || flow->ops->admits(flow))
			return FLOW_DONE;
		refuse(flow);
	}
	if (errno == EAGAIN || errno == ECONNABORTED)
		return FLOW_WAIT;
	flow_error(flow, "accept", errno, NULL);
	return FLOW_FAILED;
}

void flow_close(struct flow *flow, bool abort)
{
	if (flow->fd >= 0 && abort)
		flow_abort(flow);
	else if (flow->fd >= 0)
		close(flow->fd);
	if (flow->listen_fd >= 0)
		close(flow->listen_fd);
	flow->fd = flow->listen_fd = -1;
}

void flow_write_addresses(struct flow *flow)
{
	union address address;
	socklen_t len = sizeof(address);

	if (getsockname(flow->fd, &address.any, &len) == 0)
		address_write_packed(&flow->out, "local", &address.any, 1);
	len = sizeof(address);
	if (getpeername(flow->fd, &address.any, &len) == 0)
		address_write_packed(&flow->out, "peer", &address.any, 1);
}

void flow_write_buffers(struct flow *flow, int fd)
{
	int value;

	if (flow_get(fd, SOL_SOCKET, SO_RCVBUF, &value) == 0)
		ndjson_int(&flow->out, "rcvbuf_bytes", value / 2);
	if (flow_get(fd, SOL_SOCKET, SO_SNDBUF, &value) == 0)
		ndjson_int(&flow->out, "sndbuf_bytes", value / 2);
}

static void tell_fault(struct flow *flow, const struct account_fault *fault)
{
	if (flow->faults++ >= MAX_ERROR_RECORDS)
		return;
	ndjson_begin(&flow->out, "corrupt");
	ndjson_int(&flow->out, "t_ns", flow->read_ns);
	ndjson_uint(&flow->out, "stream", fault->stream);
	ndjson_uint(&flow->out, "message", fault->message);
	ndjson_uint(&flow->out, "offset", fault->offset);
	ndjson_uint(&flow->out, "bytes", fault->bytes);
	ndjson_uint(&flow->out, "expected", fault->expected);
	ndjson_uint(&flow->out, "found", fault->found);
	ndjson_end(&flow->out);
}

enum flow_io flow_after_short_read(const struct flow *flow)
{
	return flow->waiter.events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR) ? FLOW_MORE : FLOW_WAIT;
}

enum flow_io flow_interrupted(void)
{
	return waiter_stopped() || waiter_down() ? FLOW_WAIT : FLOW_MORE;
}

int flow_recognise(struct flow *flow, const uint8_t *data, size_t len, uint16_t stream, uint64_t number)
{
	if (flow->config->token == OPTION_NOT_GIVEN || flow->account.count ||
	    pattern_ours(data, len, stream, number))
		return 0;
	flow->stranger = true;
	return flow_error(flow, "token", 0, "the payload begins as none of this run does: refused");
}

int flow_received(struct flow *flow, int result, const struct account_fault *fault)
{
	if (result < 0)
		return flow_error(flow, "account", ENOMEM, NULL);
	if (flow->account.unique_bytes != flow->unique_before) {
		flow->unique_before = flow->account.unique_bytes;
		flow->last_ns = flow->read_ns;
	}
	if (flow->first_ns == 0 && flow->last_ns != 0) {
		flow->first_ns = flow->last_ns;
		ndjson_begin(&flow->out, "first_byte");
		ndjson_int(&flow->out, "t_ns", flow->first_ns);
		ndjson_end(&flow->out);
	}
	if (result > 0)
		tell_fault(flow, fault);
	return 0;
}

int flow_read_messages(struct flow *flow)
{
	const char *peer = flow->config->peer_messages, *beats = flow->config->heartbeats;
	char reason[300];

	if (schedule_init(&flow->schedule, flow->config, reason, sizeof(reason)))
		return flow_error(flow, "messages", 0, reason);
	if (peer && message_list_read(&flow->peer, peer, reason, sizeof(reason)))
		return flow_error(flow, "peer-messages", 0, reason);
	if (beats && heartbeat_list_read(&flow->heartbeats, beats, reason, sizeof(reason)))
		return flow_error(flow, "heartbeats", 0, reason);
	return 0;
}

static void write_time(struct flow *flow, const char *key, int64_t t_ns)
{
	if (t_ns)
		ndjson_int(&flow->out, key, t_ns);
	else
		ndjson_null(&flow->out, key);
}

void flow_write_arrived(struct flow *flow)
{
	account_write(&flow->account, &flow->out);
	write_time(flow, "first_t_ns", flow->first_ns);
	write_time(flow, "last_t_ns", flow->last_ns);
}
