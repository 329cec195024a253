/* SPDX-License-Identifier: Apache-2.0 */
/* sctp_batch: many SCTP messages in one sendmmsg() or recvmmsg(); a system call costs more than a small
 * message. */
#ifndef NETWARP_SCTP_BATCH_H
#define NETWARP_SCTP_BATCH_H

#include "sctp_api.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <time.h>

#define BATCH_SLOTS_MAX 64

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
	size_t slot_bytes;
	unsigned int slots;
	unsigned int at, end; /* sending: prepared messages the kernel has not taken yet */
};

/* As many slots of `slot_bytes` as fit into `bytes`, 1 to 64. 0, or -1 without memory. */
int sctp_batch_open(struct sctp_batch *batch, size_t slot_bytes, size_t bytes);
void sctp_batch_close(struct sctp_batch *batch);

struct flow;

/*
 * Prepare the flow's next messages, round robin over its streams, at most `left` bytes of payload, each with
 * the options a message has: unordered, PPID, lifetime or number of retransmissions (RFC 7496).
 */
void sctp_batch_fill(struct sctp_batch *batch, const struct flow *flow, uint64_t left);
/* sendmmsg() of the prepared messages: how many messages the kernel took, their payload in *bytes; -1 and
 * errno.
 */
int sctp_batch_send(struct sctp_batch *batch, int fd, uint64_t *bytes);

/* recvmmsg(): how many messages came; -1 and errno. blocking: until every slot has one (bulk.h). */
int sctp_batch_recv(struct sctp_batch *batch, const struct flow *flow, bool blocking);
/* The SCTP_RCVINFO of a received message, NULL if it has none. */
const struct sctp_rcvinfo *sctp_batch_rcvinfo(struct sctp_batch *batch, unsigned int slot);

#endif
