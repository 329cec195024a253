/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sctp_batch: sends and receives many SCTP messages by one sendmmsg() or recvmmsg(): a system call costs
 * more than a small message.
 */
#ifndef NETWARP_SCTP_BATCH_H
#define NETWARP_SCTP_BATCH_H

#include "sctp_api.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <time.h>

#define BATCH_SLOTS_MAX 64 /* messages per system call */

union batch_control {
	struct cmsghdr header;
	char sndinfo[CMSG_SPACE(sizeof(struct sctp_sndinfo)) + CMSG_SPACE(sizeof(struct sctp_prinfo))];
	char rcvinfo[CMSG_SPACE(sizeof(struct sctp_rcvinfo)) + CMSG_SPACE(sizeof(struct timespec))];
};

struct sctp_batch {
	struct mmsghdr messages[BATCH_SLOTS_MAX];
	struct iovec vectors[BATCH_SLOTS_MAX];
	union batch_control control[BATCH_SLOTS_MAX];
	uint8_t *buffer;
	size_t slot_bytes; /* of one message, at most */
	unsigned int slots;
	unsigned int at,
	    end; /* sending: messages [at, end) are prepared and not yet accepted by the kernel */
};

/* Allocate as many slots of `slot_bytes` as fit in `bytes`, 1 to BATCH_SLOTS_MAX. 0, or -1 without memory. */
int sctp_batch_open(struct sctp_batch *batch, size_t slot_bytes, size_t bytes);
void sctp_batch_close(struct sctp_batch *batch);

struct flow;

/*
 * Prepare the flow's next messages, round robin over its streams, at most `left` bytes of payload in all.
 * Each has the flow's message options: unordered, PPID, and lifetime or number of retransmissions (RFC
 * 7496).
 */
void sctp_batch_fill(struct sctp_batch *batch, const struct flow *flow, uint64_t left);
/*
 * sendmmsg() of the prepared messages. Returns the number of messages that the kernel accepted, with their
 * payload bytes in *bytes; -1 with errno set.
 */
int sctp_batch_send(struct sctp_batch *batch, int fd, uint64_t *bytes);

/*
 * recvmmsg(). Returns the number of messages; -1 with errno set. `blocking`: wait until every slot is
 * filled (bulk.h).
 */
int sctp_batch_recv(struct sctp_batch *batch, const struct flow *flow, bool blocking);
/* The SCTP_RCVINFO of a received message, NULL if it has none. */
const struct sctp_rcvinfo *sctp_batch_rcvinfo(struct sctp_batch *batch, unsigned int slot);

#endif
