/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bulk: reads that block in the kernel until there is much, once payload flows.
 *
 * A receiver that waits in epoll makes three system calls a packet, and in a User-Mode-Linux guest those cost
 * more than the packet (docs/decisions/0006-guest-speed.md). recv(MSG_WAITALL) and a blocking recvmmsg() take
 * each packet at the same instant, by the same function of the kernel, so that the receive window, the
 * acknowledgements and when they leave are those of a receiver that reads at once; only the way back to user
 * space is left out. What arrived when is the kernel's own word (SO_TIMESTAMPNS).
 *
 * SIGTERM and SIGINT end such a read; so does half the stall deadline without payload.
 */
#ifndef NETWARP_BULK_H
#define NETWARP_BULK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <time.h>

/* What a message's control buffer needs more for its time. */
#define BULK_CONTROL_BYTES CMSG_SPACE(sizeof(struct timespec))

struct flow;

/* From now on reads of flow->fd may block: flow->bulk. 0, or -1 after flow_error(). */
int bulk_begin(struct flow *flow);

/* A read goes between these two: signals are let in, and end it. */
void bulk_enter(const struct flow *flow);
void bulk_leave(void);

/*
 * Set flow->read_ns: when the payload of this message arrived (offset: clock_monotonic_offset_ns()); without
 * a time of the kernel's: now. What had to wait for something older arrived with that.
 */
void bulk_arrived(struct flow *flow, struct msghdr *message, int64_t offset);

/* A read of a byte stream that ends when `to` is full, the stream has ended or a signal came; sets read_ns.
 */
ssize_t bulk_read(struct flow *flow, uint8_t *to, size_t size);

#endif
