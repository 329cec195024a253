// SPDX-License-Identifier: Apache-2.0
/* Documented in bulk.h. */
#include "bulk.h"

#include "clock.h"
#include "transport.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

/*
 * Limit of a read without a stall deadline: the kernel reports an interrupted read without limit as
 * ERESTARTSYS.
 */
#define LONG_S 86400

int bulk_begin(struct flow *flow)
{
	int64_t half = flow->config->stall_deadline_ns / 2;
	struct timeval limit = {.tv_sec = half ? half / NS_PER_S : LONG_S,
				.tv_usec = half ? half % NS_PER_S / 1000 + 1 : 0};
	int on = 1;

	if (setsockopt(flow->fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on)))
		return flow_error(flow, "SO_TIMESTAMPNS", errno, NULL);
	if (setsockopt(flow->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)))
		return flow_error(flow, "SO_RCVTIMEO", errno, NULL);
	if (fcntl(flow->fd, F_SETFL, 0))
		return flow_error(flow, "fcntl", errno, NULL);
	flow->bulk = true;
	return 0;
}

void bulk_enter(const struct flow *flow)
{
	waiter_let_signals_in(flow->fd);
}

void bulk_leave(void)
{
	waiter_keep_signals_out();
}

void bulk_arrived(struct flow *flow, struct msghdr *message, int64_t offset)
{
	struct cmsghdr *header;
	struct timespec t;
	int64_t t_ns = 0;

	for (header = CMSG_FIRSTHDR(message); header; header = CMSG_NXTHDR(message, header))
		if (header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_TIMESTAMPNS) {
			memcpy(&t, CMSG_DATA(header), sizeof(t));
			t_ns = t.tv_sec * NS_PER_S + t.tv_nsec + offset;
		}
	if (!t_ns)
		t_ns = clock_monotonic_ns();
	if (t_ns > flow->read_ns)
		flow->read_ns = t_ns;
}

ssize_t bulk_read(struct flow *flow, uint8_t *to, size_t size)
{
	struct iovec vector = {.iov_base = to, .iov_len = size};
	_Alignas(struct cmsghdr) char control[BULK_CONTROL_BYTES];
	struct msghdr message = {
	    .msg_iov = &vector, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
	ssize_t n;

	bulk_enter(flow);
	n = recvmsg(flow->fd, &message, MSG_WAITALL);
	bulk_leave();
	if (n > 0)
		bulk_arrived(flow, &message, clock_monotonic_offset_ns());
	return n;
}

ssize_t bulk_read_some(struct flow *flow, uint8_t *to, size_t size)
{
	ssize_t n;

	if (!flow->signals_in)
		bulk_enter(flow);
	flow->signals_in = true;
	n = recv(flow->fd, to, size, 0);
	if (n > 0) {
		flow->read_ns = clock_monotonic_ns();
		return n;
	}
	bulk_leave();
	flow->signals_in = false;
	return n;
}
