/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue: a netfilter queue of the kernel (nfnetlink_queue) as packets in and verdicts out.
 *
 * Messages are written here, as cell-init writes its own: Debian has no static libmnl or
 * libnetfilter-queue (docs/decisions/0012-agents.md).
 */
#ifndef NETWARP_QUEUE_H
#define NETWARP_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A packet that the kernel holds until queue_accept(). */
struct queued {
	uint32_t id;
	uint32_t indev, outdev; /* interfaces; 0: none */
	uint8_t *data;		/* in a buffer of this module, valid only until `take` returns */
	size_t len;
	bool whole; /* data[0..len) is all of it */
};

/*
 * Open queue `number` of this network namespace: whole packets are copied here, at most `most` wait, and
 * what comes to a full queue goes on without us (fail-open). One queue per process: its number is kept for
 * the verdicts. Returns a descriptor, or -1 with errno set.
 */
int queue_open(uint16_t number, uint32_t most);

/*
 * Hand each packet that is there to `take`, which gives its verdict (queue_accept()): the kernel holds it
 * until then. Never waits. Returns 0, or -1 with errno set. Each ENOBUFS (the socket had no room) adds 1 to
 * *lost, however many packets were lost.
 */
int queue_receive(int fd, void (*take)(void *context, const struct queued *packet), void *context,
		  uint64_t *lost);

/* Verdicts. changed: the packet goes on as data[0..len). mark: for the rules behind the queue, 0: none. */
int queue_accept(int fd, uint32_t id, const uint8_t *changed, size_t len, uint32_t mark);

/* The messages of data[0..len) as the kernel sends them: the part of queue_receive() that is pure. */
void queue_read(uint8_t *data, size_t len, void (*take)(void *context, const struct queued *packet),
		void *context);

#endif
