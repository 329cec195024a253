// SPDX-License-Identifier: Apache-2.0
/*
 * UDP: each message is a datagram of its own, with its number in the payload's pattern (pattern.h). There is
 * no connection: the receiver takes the address of the first datagram for its peer, and goes on until it is
 * asked to end. A datagram that the sender's host cannot send (no route while an interface is down) is lost
 * like one that the network drops.
 */
#include "transport.h"

#include "clock.h"
#include "pattern.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define SLOTS_MAX    64
#define DATAGRAM_MAX 65535
#define RECV_SLOTS   16

struct udp {
	struct mmsghdr messages[SLOTS_MAX];
	struct iovec vectors[SLOTS_MAX];
	uint8_t *buffer;
	size_t slot_bytes;
	unsigned int slots;
	unsigned int at, end; /* sending: datagrams [at, end) are prepared */
	uint64_t not_sent;    /* datagrams that the host could not send */
};

static int make_slots(struct flow *flow, struct udp *udp)
{
	unsigned int i;

	udp->slot_bytes = flow_sends(flow) ? (size_t)schedule_largest(&flow->schedule) : DATAGRAM_MAX;
	udp->slots = flow_sends(flow) ? SLOTS_MAX : RECV_SLOTS;
	udp->buffer = malloc(udp->slots * udp->slot_bytes);
	if (!udp->buffer)
		return flow_error(flow, "memory", ENOMEM, NULL);
	for (i = 0; i < udp->slots; i++) {
		udp->vectors[i].iov_base = udp->buffer + i * udp->slot_bytes;
		udp->messages[i].msg_hdr.msg_iov = &udp->vectors[i];
		udp->messages[i].msg_hdr.msg_iovlen = 1;
	}
	return 0;
}

/* Sets the codepoint of ECN, the lowest two bits of the traffic class (RFC 3168 5). */
static int set_codepoint(struct flow *flow, int fd, int family)
{
	static const char *const names[] = {"not-ect", "ect1", "ect0", "ce"};
	int value = 0;

	while (strcmp(names[value], flow->config->ecn) != 0)
		value++;
	if (family == AF_INET6)
		return flow_set(flow, fd, IPPROTO_IPV6, IPV6_TCLASS, value, "IPV6_TCLASS");
	return flow_set(flow, fd, IPPROTO_IP, IP_TOS, value, "IP_TOS");
}

static int udp_open(struct flow *flow)
{
	const struct config *config = flow->config;
	bool receiver = flow->role == ROLE_RECEIVER;
	int family = address_family(receiver ? &config->bind : &config->to);
	union address address = {.any.sa_family = (sa_family_t)family}; /* any address */
	struct udp *udp = calloc(1, sizeof(*udp));
	int fd;

	flow->state = udp;
	if (!udp)
		return flow_error(flow, "memory", ENOMEM, NULL);
	if (make_slots(flow, udp))
		return -1;
	fd = flow_socket(flow, family, SOCK_DGRAM, 0);
	if (fd < 0)
		return -1;
	*(receiver ? &flow->listen_fd : &flow->fd) = fd;
	if (config->ecn && set_codepoint(flow, fd, family))
		return -1;
	if (config->bind.count)
		address = config->bind.items[0];
	else if (flow_own_port(flow) == 0)
		return 0;
	address_set_port(&address, flow_own_port(flow));
	if (bind(fd, &address.any, address_length(&address.any)))
		return flow_error(flow, "bind", errno, NULL);
	return 0;
}

static int udp_listen(struct flow *flow)
{
	(void)flow;
	return 0;
}

/* The sender of the first datagram that --peer knows is the peer; the datagram stays where it is. */
static enum flow_io udp_accept(struct flow *flow)
{
	union address peer;
	socklen_t len;
	uint8_t byte;

	for (;;) {
		len = sizeof(peer);
		if (recvfrom(flow->listen_fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT, &peer.any, &len) < 0)
			break;
		if (!flow->config->peer.count || address_list_holds(&flow->config->peer, &peer.any, 1)) {
			if (connect(flow->listen_fd, &peer.any, len)) {
				flow_error(flow, "connect", errno, NULL);
				return FLOW_FAILED;
			}
			flow->fd = flow->listen_fd;
			flow->listen_fd = -1;
			return FLOW_DONE;
		}
		flow->refused++;
		(void)!recv(flow->listen_fd, &byte, 1, MSG_DONTWAIT);
	}
	if (errno == EAGAIN || errno == ECONNREFUSED)
		return FLOW_WAIT;
	flow_error(flow, "recvfrom", errno, NULL);
	return FLOW_FAILED;
}

static int udp_connect(struct flow *flow)
{
	union address to = flow->config->to.items[0];

	address_set_port(&to, (uint16_t)flow->config->port);
	if (connect(flow->fd, &to.any, address_length(&to.any)))
		return flow_error(flow, "connect", errno, NULL);
	return 0;
}

static enum flow_io udp_connected(struct flow *flow)
{
	return flow->waiter.events & EPOLLOUT ? FLOW_DONE : FLOW_WAIT;
}

static void fill(struct udp *udp, const struct flow *flow, uint64_t left)
{
	uint64_t message = flow->sent_messages;
	unsigned int i;
	size_t len;

	for (i = 0; i < udp->slots && left > 0; i++, message++) {
		len = (size_t)schedule_size(&flow->schedule, message);
		if (left < len)
			len = (size_t)left;
		left -= len;
		udp->vectors[i].iov_len = len;
		pattern_fill(udp->vectors[i].iov_base, len, 0, message, 0);
	}
	udp->at = 0;
	udp->end = i;
}

/* True for an error that is not this datagram's (an answer of ICMP to an earlier one), or that says that no
 * way leads there now.
 */
static bool passes(int error)
{
	return error == ECONNREFUSED || error == ENETUNREACH || error == EHOSTUNREACH || error == ENETDOWN ||
	       error == ENOBUFS;
}

static enum flow_io udp_send(struct flow *flow, uint64_t limit)
{
	struct udp *udp = flow->state;
	int n, i;

	if (udp->at == udp->end)
		fill(udp, flow, limit - flow->sent_bytes);
	n = sendmmsg(flow->fd, udp->messages + udp->at, udp->end - udp->at, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0 && errno == EAGAIN)
		return FLOW_WAIT;
	if (n < 0 && errno != ECONNREFUSED && passes(errno)) {
		udp->not_sent++;
		n = 1; /* as if it had been sent */
	} else if (n < 0 && errno != ECONNREFUSED) {
		return flow_lost(flow, "sendmmsg", errno,
				 errno == EMSGSIZE ? "a message has to fit into a datagram" : NULL);
	}
	for (i = 0; i < n; i++)
		flow->sent_bytes += udp->vectors[udp->at++].iov_len;
	flow->sent_messages += n > 0 ? (uint64_t)n : 0;
	return flow->sent_bytes == limit ? FLOW_DONE : FLOW_MORE;
}

static enum flow_io udp_recv(struct flow *flow)
{
	struct udp *udp = flow->state;
	struct account_fault fault;
	const uint8_t *data;
	unsigned int i;
	size_t len;
	int n;

	if (!flow_receives(flow)) {
		uint8_t unexpected;

		/* the error of an ICMP message that came back, or nothing */
		n = (int)recv(flow->fd, &unexpected, 1, MSG_DONTWAIT);
		if (n >= 0)
			flow_error(flow, "recv", EPROTO, FLOW_UNEXPECTED);
		return n >= 0 ? FLOW_FAILED : passes(errno) ? FLOW_MORE : FLOW_WAIT;
	}
	for (i = 0; i < udp->slots; i++)
		udp->vectors[i].iov_len = udp->slot_bytes;
	n = recvmmsg(flow->fd, udp->messages, udp->slots, MSG_DONTWAIT, NULL);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? FLOW_WAIT
							 : flow_lost(flow, "recvmmsg", errno, NULL);
	flow->read_ns = clock_monotonic_ns();
	for (i = 0; i < (unsigned int)n; i++) {
		data = udp->vectors[i].iov_base;
		len = udp->messages[i].msg_len;
		if (flow_recognise(flow, data, len, 0, pattern_number(data, len, 0)))
			return FLOW_FAILED;
		if (flow_received(flow, account_message(&flow->account, 0, data, len, true, &fault), &fault))
			return FLOW_FAILED;
	}
	return (unsigned int)n == udp->slots ? FLOW_MORE : FLOW_WAIT;
}

static bool udp_progress(struct flow *flow, uint64_t *acknowledged)
{
	*acknowledged = flow->sent_messages;
	return true;
}

static bool udp_admits(struct flow *flow)
{
	(void)flow;
	return true;
}

static void udp_sample(struct flow *flow)
{
	ndjson_array_begin(&flow->out, "paths");
	ndjson_array_end(&flow->out);
}

static void udp_in_force(struct flow *flow)
{
	flow_write_buffers(flow, flow->fd);
}

static void udp_counters(struct flow *flow)
{
	const struct udp *udp = flow->state;

	if (flow_sends(flow))
		ndjson_uint(&flow->out, "not_sent", udp->not_sent);
}

static int udp_shutdown(struct flow *flow)
{
	return flow_error(flow, "shutdown", EOPNOTSUPP, "UDP has no connection to close");
}

static void udp_close(struct flow *flow, bool abort)
{
	struct udp *udp = flow->state;

	(void)abort;
	flow_close(flow, false);
	if (udp)
		free(udp->buffer);
	free(udp);
	flow->state = NULL;
}

const struct transport_ops udp_ops = {
    .name = "udp",
    .listens_on = true,
    .open = udp_open,
    .listen = udp_listen,
    .accept = udp_accept,
    .connect = udp_connect,
    .connected = udp_connected,
    .send = udp_send,
    .recv = udp_recv,
    .progress = udp_progress,
    .sample = udp_sample,
    .admits = udp_admits,
    .addresses = flow_write_addresses,
    .in_force = udp_in_force,
    .counters = udp_counters,
    .shutdown = udp_shutdown,
    .close = udp_close,
};
