// SPDX-License-Identifier: Apache-2.0
/*
 * TCP, and MPTCP, which is the same socket interface with another protocol number (its further subflows are
 * the kernel's path manager's business, so the testbed's).
 */
#include "transport.h"

#include "bulk.h"
#include "clock.h"
#include "pattern.h"
#include "tcp_info.h"
#include "tcp_sends.h"
#include "window_clamp.h"

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/mptcp.h>
#include <linux/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif
#ifndef SOL_MPTCP
#define SOL_MPTCP 284
#endif

#define SUBFLOWS_MAX 16
/* TCP_CLOSE of the kernel's net/tcp_states.h */
#define STATE_CLOSE 7

struct tcp {
	uint8_t *in, *out; /* NULL for a direction in which this end has no payload */
	size_t in_size;
	size_t write_size; /* whole messages that fit into `out` */
	bool shared;	   /* `in` and `out` are those of all flows of the process */
	size_t at, end;	   /* payload in `out` that the kernel has not taken yet */
	struct window_clamp clamp;
	union address peer; /* of a sender's connection, once it has sampled it */
	bool tells_nothing; /* its congestion control has no struct tcp_bbr_info */
};

#ifdef MPTCP_FULL_INFO
/* MPTCP: the state of all subflows in one call. */
struct subflows {
	struct mptcp_full_info full;
	struct mptcp_subflow_info addresses[SUBFLOWS_MAX];
	struct tcp_info info[SUBFLOWS_MAX];
};
#endif

static bool is_mptcp(const struct flow *flow)
{
	return flow->ops == &mptcp_ops;
}

static int bind_first(struct flow *flow, int fd, int family, uint16_t port)
{
	const struct address_list *list = &flow->config->bind;
	union address address = {.any.sa_family = (sa_family_t)family}; /* any address */

	if (list->count)
		address = list->items[0];
	else if (port == 0)
		return 0;
	if (family == AF_INET6)
		address_map(&address);
	address_set_port(&address, port);
	if (bind(fd, &address.any, address_length(&address.any)) == 0)
		return 0;
	return flow_error(flow, "bind", errno, NULL);
}

static int set_pacing(struct flow *flow, int fd)
{
	uint64_t rate = (uint64_t)flow->config->pacing_rate_bit_s / 8, in_force = 0;
	socklen_t len = sizeof(in_force);
	char detail[120];

	if (setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof(rate)) ||
	    getsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &in_force, &len))
		return flow_error(flow, "SO_MAX_PACING_RATE", errno, NULL);
	if (in_force == rate)
		return 0;
	snprintf(detail, sizeof(detail), "asked for %llu byte/s, the kernel has %llu",
		 (unsigned long long)rate, (unsigned long long)in_force);
	return flow_error(flow, "SO_MAX_PACING_RATE", EINVAL, detail);
}

static int set_options(struct flow *flow, int fd)
{
	const struct config *config = flow->config;

	if (config->mss_bytes != OPTION_NOT_GIVEN &&
	    flow_set(flow, fd, IPPROTO_TCP, TCP_MAXSEG, (int)config->mss_bytes, "TCP_MAXSEG"))
		return -1;
	if (config->nodelay && flow_set(flow, fd, IPPROTO_TCP, TCP_NODELAY, 1, "TCP_NODELAY"))
		return -1;
	if (config->pacing_rate_bit_s != OPTION_NOT_GIVEN && set_pacing(flow, fd))
		return -1;
	if (config->congestion && setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, config->congestion,
					     (socklen_t)strlen(config->congestion))) {
		flow_error(flow, "TCP_CONGESTION", errno, config->congestion);
		if (errno == ENOENT)
			flow->status = EXIT_CANNOT;
		return -1;
	}
	return 0;
}

static int make_buffers(struct flow *flow, struct tcp *tcp)
{
	static uint8_t *common_in, *common_out;
	size_t out_size = BATCH_BYTES;

	/* many flows in a process need no buffer of their own: what it holds follows from the place in the
	 * flow */
	tcp->shared = flow->waiter.hosted && !flow->config->separate_sends &&
		      flow->config->message_bytes <= BATCH_BYTES;
	if (tcp->shared && !common_in) {
		common_in = malloc(BATCH_BYTES);
		common_out = malloc(BATCH_BYTES);
	}
	if (flow_sends(flow)) {
		tcp->write_size = (size_t)flow->config->message_bytes;
		if (tcp->write_size < BATCH_BYTES)
			tcp->write_size = BATCH_BYTES - BATCH_BYTES % tcp->write_size;
		if (out_size < tcp->write_size)
			out_size = tcp->write_size;
		tcp->out = tcp->shared ? common_out : malloc(out_size);
	}
	if (flow_receives(flow)) {
		tcp->in_size = BATCH_BYTES;
		tcp->in = tcp->shared ? common_in : malloc(tcp->in_size);
	}
	if ((flow_sends(flow) && !tcp->out) || (flow_receives(flow) && !tcp->in))
		return flow_error(flow, "memory", ENOMEM, NULL);
	return 0;
}

static int tcp_open(struct flow *flow)
{
	const struct config *config = flow->config;
	bool receiver = flow->role == ROLE_RECEIVER;
	const struct address_list *list = receiver ? &config->bind : &config->to;
	int family = address_family(list); /* of MPTCP's subflows some may be of another than the first */
	struct tcp *tcp = calloc(1, sizeof(*tcp));
	int fd;

	flow->state = tcp;
	if (!tcp)
		return flow_error(flow, "memory", ENOMEM, NULL);
	if (make_buffers(flow, tcp))
		return -1;
	fd = flow_socket(flow, family, SOCK_STREAM, is_mptcp(flow) ? IPPROTO_MPTCP : IPPROTO_TCP);
	if (fd < 0)
		return -1;
	*(receiver ? &flow->listen_fd : &flow->fd) = fd;
	/* a run right after another one must not meet its TIME_WAIT */
	if (receiver ? flow_set(flow, fd, SOL_SOCKET, SO_REUSEADDR, 1, "SO_REUSEADDR")
		     : flow_reuse_port(flow, fd))
		return -1;
	if (set_options(flow, fd) || bind_first(flow, fd, family, flow_own_port(flow)))
		return -1;
	if (config->window_clamp_bytes != OPTION_NOT_GIVEN)
		return window_clamp_listen(&tcp->clamp, flow, fd);
	return 0;
}

static enum flow_io tcp_accept(struct flow *flow)
{
	struct tcp *tcp = flow->state;
	enum flow_io io = flow_accept(flow);

	if (io == FLOW_DONE && tcp->clamp.bytes && window_clamp_accepted(&tcp->clamp, flow))
		return FLOW_FAILED;
	return io;
}

static int tcp_connect(struct flow *flow)
{
	union address to = flow->config->to.items[0];

	if (address_family(&flow->config->to) == AF_INET6)
		address_map(&to);
	address_set_port(&to, (uint16_t)flow->config->port);
	if (connect(flow->fd, &to.any, address_length(&to.any)) && errno != EINPROGRESS)
		return flow_error(flow, "connect", errno, NULL);
	return 0;
}

static enum flow_io tcp_connected(struct flow *flow)
{
	int error = 0;

	if (flow_get(flow->fd, SOL_SOCKET, SO_ERROR, &error) || error) {
		flow_error(flow, "connect", error ? error : errno, NULL);
		return FLOW_FAILED;
	}
	return flow->waiter.events & EPOLLOUT ? FLOW_DONE : FLOW_WAIT;
}

static enum flow_io tcp_send(struct flow *flow, uint64_t limit)
{
	struct tcp *tcp = flow->state;
	ssize_t n;
	bool full;

	if (tcp->at == tcp->end) {
		tcp->at = 0;
		tcp->end = tcp->write_size;
		if (limit - flow->sent_bytes < tcp->end)
			tcp->end = (size_t)(limit - flow->sent_bytes);
		pattern_fill_flow(tcp->out, tcp->end, flow->sent_bytes);
	}
	if (flow->config->separate_sends)
		n = tcp_sends(flow->fd, tcp->out, tcp->at, tcp->end, (size_t)flow->config->message_bytes);
	else
		n = send(flow->fd, tcp->out + tcp->at, tcp->end - tcp->at, MSG_DONTWAIT | MSG_NOSIGNAL);
	full = n >= 0 && tcp->at + (size_t)n == tcp->end;
	if (n >= 0)
		tcp->at += (size_t)n;
	if (tcp->shared)
		tcp->at = tcp->end; /* filled anew the next time */
	if (n < 0)
		return errno == EAGAIN ? FLOW_WAIT : flow_lost(flow, "send", errno, NULL);
	flow->sent_bytes += (uint64_t)n;
	if (flow->sent_bytes == limit)
		return FLOW_DONE;
	return full ? FLOW_MORE : FLOW_WAIT;
}

static ssize_t read_now(struct flow *flow, uint8_t *to, size_t size)
{
	ssize_t n = recv(flow->fd, to, size, MSG_DONTWAIT);

	if (n > 0)
		flow->read_ns = clock_monotonic_ns();
	return n;
}

static enum flow_io tcp_recv(struct flow *flow)
{
	bool receives = flow_receives(flow);
	struct tcp *tcp = flow->state;
	struct account_fault fault;
	uint8_t unexpected;
	ssize_t n;

	if (flow->bulk && tcp->clamp.bytes)
		n = bulk_read_some(flow, tcp->in, tcp->in_size);
	else if (flow->bulk)
		n = bulk_read(flow, tcp->in, tcp->in_size);
	else
		n = read_now(flow, receives ? tcp->in : &unexpected, receives ? tcp->in_size : 1);
	if (n < 0)
		return errno == EINTR	 ? flow_interrupted()
		       : errno == EAGAIN ? FLOW_WAIT
					 : flow_lost(flow, "recv", errno, NULL);
	if (n == 0)
		return FLOW_CLOSED;
	if (!receives) {
		flow_error(flow, "recv", EPROTO, FLOW_UNEXPECTED);
		return FLOW_FAILED;
	}
	if (tcp->clamp.bytes && window_clamp_received(&tcp->clamp, flow, (size_t)n))
		return FLOW_FAILED;
	if (flow_recognise(flow, tcp->in, (size_t)n, 0, 0))
		return FLOW_FAILED;
	if (flow_received(flow, account_bytes(&flow->account, tcp->in, (size_t)n, &fault), &fault))
		return FLOW_FAILED;
	/* the next read of a window clamp's receiver waits by itself */
	if ((size_t)n == tcp->in_size || (flow->bulk && tcp->clamp.bytes))
		return FLOW_MORE;
	return flow_after_short_read(flow);
}

#ifdef MPTCP_FULL_INFO
static int get_subflows(struct flow *flow, struct subflows *sub)
{
	socklen_t len = sizeof(sub->full);

	memset(sub, 0, sizeof(*sub));
	sub->full.size_tcpinfo_user = sizeof(sub->info[0]);
	sub->full.size_sfinfo_user = sizeof(sub->addresses[0]);
	sub->full.size_arrays_user = SUBFLOWS_MAX;
	sub->full.subflow_info = (uintptr_t)sub->addresses;
	sub->full.tcp_info = (uintptr_t)sub->info;
	return getsockopt(flow->fd, SOL_MPTCP, MPTCP_FULL_INFO, &sub->full, &len);
}
#endif

static int get_info(struct flow *flow, struct tcp_info *info, socklen_t *len)
{
	*len = sizeof(*info);
	memset(info, 0, *len);
	return getsockopt(flow->fd, IPPROTO_TCP, TCP_INFO, info, len);
}

static bool tcp_progress(struct flow *flow, uint64_t *acknowledged)
{
	struct tcp_info info;
	socklen_t len;

	if (get_info(flow, &info, &len))
		return false;
	*acknowledged = info.tcpi_bytes_acked;
	return true;
}

static bool mptcp_progress(struct flow *flow, uint64_t *acknowledged)
{
	struct mptcp_info info = {0};
	socklen_t len = sizeof(info);

	if (getsockopt(flow->fd, SOL_MPTCP, MPTCP_INFO, &info, &len))
		return false;
	*acknowledged = info.mptcpi_snd_una;
	return true;
}

static bool tcp_admits(struct flow *flow)
{
	union address peer;
	socklen_t len = sizeof(peer);

	return getpeername(flow->fd, &peer.any, &len) == 0 &&
	       address_list_holds(&flow->config->peer, &peer.any, 1);
}

/*
 * The kernel tells no kind with this, but of its structures only that of BBR, and what others put behind it,
 * is so long (union tcp_cc_info).
 */
static const struct tcp_bbr_info *get_bbr_info(struct flow *flow, struct tcp_bbr_info *info)
{
	struct tcp *tcp = flow->state;
	socklen_t len = sizeof(*info);

	if (!tcp->tells_nothing &&
	    (getsockopt(flow->fd, IPPROTO_TCP, TCP_CC_INFO, info, &len) || len < sizeof(*info)))
		tcp->tells_nothing = true;
	return tcp->tells_nothing ? NULL : info;
}

static void tcp_sample(struct flow *flow)
{
	struct tcp *tcp = flow->state;
	socklen_t peer_len = sizeof(tcp->peer), len;
	struct tcp_bbr_info bbr;
	struct tcp_info info;

	if (!tcp->peer.any.sa_family && getpeername(flow->fd, &tcp->peer.any, &peer_len))
		tcp->peer.any.sa_family = 0;
	ndjson_array_begin(&flow->out, "paths");
	/* a closed connection has no peer any more */
	if (tcp->peer.any.sa_family && get_info(flow, &info, &len) == 0 && info.tcpi_state != STATE_CLOSE)
		tcp_info_write_path(&flow->out, &tcp->peer.any, &info, len, get_bbr_info(flow, &bbr));
	ndjson_array_end(&flow->out);
}

#ifdef MPTCP_FULL_INFO
static void mptcp_sample(struct flow *flow)
{
	struct subflows sub;
	unsigned int i, count;

	if (get_subflows(flow, &sub))
		return;
	count = sub.full.num_subflows < SUBFLOWS_MAX ? sub.full.num_subflows : SUBFLOWS_MAX;
	ndjson_array_begin(&flow->out, "paths");
	for (i = 0; i < count; i++)
		tcp_info_write_path(&flow->out, (const struct sockaddr *)&sub.addresses[i].addrs.ss_remote,
				    &sub.info[i], sub.full.size_tcpinfo_user, NULL);
	ndjson_array_end(&flow->out);
	tcp_info_write_mptcp(&flow->out, &sub.full.mptcp_info);
}
#else
/* headers older than Linux 6.5: as on a kernel that does not know the option */
static void mptcp_sample(struct flow *flow)
{
	(void)flow;
}
#endif

static void tcp_counters(struct flow *flow)
{
	struct tcp *tcp = flow->state;
	struct tcp_info info;
	socklen_t len;

	if (get_info(flow, &info, &len) == 0)
		tcp_info_write(&flow->out, &info, len);
	if (tcp->clamp.bytes)
		window_clamp_finish(&tcp->clamp, flow);
}

static void tcp_in_force(struct flow *flow)
{
	char name[32] = "";
	socklen_t len = sizeof(name) - 1;
	uint64_t pacing = 0;
	int value;

	flow_write_buffers(flow, flow->fd);
	if (getsockopt(flow->fd, IPPROTO_TCP, TCP_CONGESTION, name, &len) == 0)
		ndjson_str(&flow->out, "congestion", name);
	if (flow_get(flow->fd, IPPROTO_TCP, TCP_MAXSEG, &value) == 0)
		ndjson_int(&flow->out, "mss_bytes", value);
	if (flow_get(flow->fd, IPPROTO_TCP, TCP_NODELAY, &value) == 0)
		ndjson_bool(&flow->out, "nodelay", value);
	len = sizeof(pacing);
	if (getsockopt(flow->fd, SOL_SOCKET, SO_MAX_PACING_RATE, &pacing, &len) == 0 && ~pacing)
		ndjson_uint(&flow->out, "pacing_rate_bit_s", 8 * pacing);
	else
		ndjson_null(&flow->out, "pacing_rate_bit_s");
}

static int tcp_shutdown(struct flow *flow)
{
	if (shutdown(flow->fd, SHUT_WR) && errno != ENOTCONN)
		return flow_error(flow, "shutdown", errno, NULL);
	return 0;
}

static void tcp_close(struct flow *flow, bool abort)
{
	struct tcp *tcp = flow->state;

	flow_close(flow, abort);
	if (tcp && !tcp->shared) {
		free(tcp->in);
		free(tcp->out);
	}
	free(tcp);
	flow->state = NULL;
}

#define SHARED_OPS                                                                                           \
	.open = tcp_open, .listen = flow_listen, .accept = tcp_accept, .connect = tcp_connect,               \
	.connected = tcp_connected, .send = tcp_send, .recv = tcp_recv, .in_force = tcp_in_force,            \
	.admits = tcp_admits, .addresses = flow_write_addresses, .shutdown = tcp_shutdown,                   \
	.close = tcp_close

const struct transport_ops tcp_ops = {
    .name = "tcp",
    .reads_in_bulk = true,
    SHARED_OPS,
    .progress = tcp_progress,
    .sample = tcp_sample,
    .counters = tcp_counters,
};

const struct transport_ops mptcp_ops = {
    .name = "mptcp",
    SHARED_OPS,
    .listens_on = true,
    .progress = mptcp_progress,
    .sample = mptcp_sample,
    .counters = mptcp_sample,
};
