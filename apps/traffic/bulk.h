/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bulk: reads that block in the kernel until a large buffer is full. A receiver uses them after the first
 * payload.
 *
 * A receiver that waits in epoll makes three system calls per packet, which in a User-Mode-Linux guest cost
 * more than the packet (docs/decisions/0006-guest-speed.md). recv(MSG_WAITALL) and a blocking recvmmsg()
 * remove each packet from the socket at the same instant, by the same kernel function, as a read after
 * epoll would. So the receive window, the acknowledgements and their times are the same; only the return to
 * user space is saved. Arrival times come from the kernel (SO_TIMESTAMPNS).
 *
 * SIGTERM and SIGINT end such a read. So does half the stall deadline without payload: the receiver then
 * checks the deadline itself.
 */
#ifndef NETWARP_BULK_H
#define NETWARP_BULK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <time.h>

/* Bytes that the kernel's time stamp needs in the control buffer of a message. */
#define BULK_CONTROL_BYTES CMSG_SPACE(sizeof(struct timespec))

struct flow;

/*
 * Allow reads of flow->fd to block: sets SO_TIMESTAMPNS and SO_RCVTIMEO, clears O_NONBLOCK, sets
 * flow->bulk. 0, or -1 after flow_error().
 */
int bulk_begin(struct flow *flow);

/*
 * Call them before and after a blocking read: between them SIGTERM and SIGINT are unblocked and end the
 * read.
 */
void bulk_enter(const struct flow *flow);
void bulk_leave(void);

/*
 * Set flow->read_ns to the time at which this message arrived: the kernel's time stamp plus `offset`
 * (clock_monotonic_offset_ns()), or now where there is no stamp. It never goes back: payload that had to
 * wait for an older, retransmitted piece counts as arrived with that piece.
 */
void bulk_arrived(struct flow *flow, struct msghdr *message, int64_t offset);

/*
 * Read a byte stream until `to` is full, the stream ends, the time limit passes or a signal arrives. Sets
 * flow->read_ns. Returns as recvmsg(2).
 */
ssize_t bulk_read(struct flow *flow, uint8_t *to, size_t size);

/*
 * Read what has arrived of a byte stream, or wait for it: one system call instead of epoll and a read.
 * Signals stay unblocked between two such reads that succeed. Sets flow->read_ns to now. Returns as recv(2).
 */
ssize_t bulk_read_some(struct flow *flow, uint8_t *to, size_t size);

#endif
