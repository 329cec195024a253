// SPDX-License-Identifier: Apache-2.0
/* Documented in sctp_batch.h. */
#include "sctp_batch.h"

#include "bulk.h"
#include "pattern.h"
#include "transport.h"

#include <stdlib.h>
#include <string.h>

#define NS_PER_MS 1000000

int sctp_batch_open(struct sctp_batch *batch, size_t slot_bytes, size_t bytes)
{
	size_t slots = bytes / slot_bytes;
	unsigned int i;

	batch->slots = (unsigned int)(slots < 1 ? 1 : slots > BATCH_SLOTS_MAX ? BATCH_SLOTS_MAX : slots);
	batch->slot_bytes = slot_bytes;
	batch->at = batch->end = 0;
	batch->buffer = malloc(batch->slots * slot_bytes);
	if (!batch->buffer)
		return -1;
	for (i = 0; i < batch->slots; i++) {
		batch->vectors[i].iov_base = batch->buffer + i * slot_bytes;
		batch->messages[i].msg_hdr.msg_iov = &batch->vectors[i];
		batch->messages[i].msg_hdr.msg_iovlen = 1;
		batch->messages[i].msg_hdr.msg_control = &batch->control[i];
	}
	return 0;
}

void sctp_batch_close(struct sctp_batch *batch)
{
	free(batch->buffer);
	batch->buffer = NULL;
}

/* The ancillary data of a message: SCTP_SNDINFO, and SCTP_PRINFO where it may be given up. */
static void set_control(struct msghdr *message, const struct config *config, uint16_t stream)
{
	struct sctp_sndinfo info = {.snd_sid = stream,
				    .snd_flags = config->unordered ? SCTP_UNORDERED : 0,
				    .snd_ppid =
					config->ppid == OPTION_NOT_GIVEN ? 0 : htonl((uint32_t)config->ppid)};
	struct sctp_prinfo partial = {0};
	struct cmsghdr *header;

	message->msg_controllen = CMSG_SPACE(sizeof(info));
	header = CMSG_FIRSTHDR(message);
	header->cmsg_level = IPPROTO_SCTP;
	header->cmsg_type = SCTP_SNDINFO;
	header->cmsg_len = CMSG_LEN(sizeof(info));
	memcpy(CMSG_DATA(header), &info, sizeof(info));
	if (config->lifetime_ns != OPTION_NOT_GIVEN) {
		partial.pr_policy = SCTP_PR_SCTP_TTL;
		partial.pr_value = (uint32_t)(config->lifetime_ns / NS_PER_MS); /* RFC 7496: ms */
	} else if (config->max_retransmissions != OPTION_NOT_GIVEN) {
		partial.pr_policy = SCTP_PR_SCTP_RTX;
		partial.pr_value = (uint32_t)config->max_retransmissions;
	} else {
		return;
	}
	message->msg_controllen += CMSG_SPACE(sizeof(partial));
	header = (struct cmsghdr *)((char *)header + CMSG_SPACE(sizeof(info)));
	header->cmsg_level = IPPROTO_SCTP;
	header->cmsg_type = SCTP_PRINFO;
	header->cmsg_len = CMSG_LEN(sizeof(partial));
	memcpy(CMSG_DATA(header), &partial, sizeof(partial));
}

void sctp_batch_fill(struct sctp_batch *batch, const struct flow *flow, uint64_t left)
{
	const struct schedule *schedule = &flow->schedule;
	uint64_t message = flow->sent_messages;
	unsigned int i;
	uint16_t stream;
	size_t len;

	for (i = 0; i < batch->slots && left > 0; i++, message++) {
		len = (size_t)schedule_size(schedule, message);
		if (left < len)
			len = (size_t)left;
		left -= len;
		stream = schedule_stream(schedule, message);
		batch->vectors[i].iov_len = len;
		pattern_fill(batch->vectors[i].iov_base, len, stream, schedule_number(schedule, message), 0);
		set_control(&batch->messages[i].msg_hdr, flow->config, stream);
	}
	batch->at = 0;
	batch->end = i;
}

int sctp_batch_send(struct sctp_batch *batch, int fd, uint64_t *bytes)
{
	int n =
	    sendmmsg(fd, batch->messages + batch->at, batch->end - batch->at, MSG_DONTWAIT | MSG_NOSIGNAL);
	int i;

	*bytes = 0;
	for (i = 0; i < n; i++)
		*bytes += batch->vectors[batch->at++].iov_len;
	return n;
}

int sctp_batch_recv(struct sctp_batch *batch, const struct flow *flow, bool blocking)
{
	unsigned int i;
	int n;

	for (i = 0; i < batch->slots; i++) {
		batch->vectors[i].iov_len = batch->slot_bytes;
		batch->messages[i].msg_hdr.msg_controllen = sizeof(batch->control[i]);
	}
	if (!blocking)
		return recvmmsg(flow->fd, batch->messages, batch->slots, MSG_DONTWAIT, NULL);
	bulk_enter(flow);
	n = recvmmsg(flow->fd, batch->messages, batch->slots, 0, NULL);
	bulk_leave();
	return n;
}

const struct sctp_rcvinfo *sctp_batch_rcvinfo(struct sctp_batch *batch, unsigned int slot)
{
	struct msghdr *message = &batch->messages[slot].msg_hdr;
	struct cmsghdr *header;

	for (header = CMSG_FIRSTHDR(message); header; header = CMSG_NXTHDR(message, header))
		if (header->cmsg_level == IPPROTO_SCTP && header->cmsg_type == SCTP_RCVINFO)
			return (const struct sctp_rcvinfo *)CMSG_DATA(header);
	return NULL;
}
