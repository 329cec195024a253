// SPDX-License-Identifier: Apache-2.0
/* Documented in queue.h. */
#include "queue.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_queue.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define RECEIVE_BYTES (128 * 1024) /* a message with the longest packet fits */
#define SOCKET_BYTES  (8 * 1024 * 1024)
#define HEAD	      sizeof(struct nlattr)

static uint16_t queue_number; /* of the one queue of this process */

static size_t aligned(size_t len)
{
	return (len + 3) & ~(size_t)3;
}

struct message {
	struct nlmsghdr header;
	struct nfgenmsg generic;
	uint8_t attributes[128];
};

static void message_begin(struct message *message, uint8_t type, uint16_t flags)
{
	memset(message, 0, sizeof(*message));
	message->header.nlmsg_len = NLMSG_LENGTH(sizeof(message->generic));
	message->header.nlmsg_type = (uint16_t)(NFNL_SUBSYS_QUEUE << 8 | type);
	message->header.nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags);
	message->generic.nfgen_family = AF_UNSPEC;
	message->generic.version = NFNETLINK_V0;
	message->generic.res_id = htons(queue_number);
}

static void message_add(struct message *message, uint16_t type, const void *data, size_t len)
{
	struct nlattr attribute = {.nla_len = (uint16_t)(HEAD + len), .nla_type = type};
	uint8_t *at = (uint8_t *)message + message->header.nlmsg_len;

	memcpy(at, &attribute, sizeof(attribute));
	memcpy(at + HEAD, data, len);
	message->header.nlmsg_len += (uint32_t)aligned(attribute.nla_len);
}

static void message_add32(struct message *message, uint16_t type, uint32_t value)
{
	uint32_t wire = htonl(value);

	message_add(message, type, &wire, sizeof(wire));
}

/* Send a configuration and read the kernel's answer to it. */
static int configure(int fd, struct message *message)
{
	struct {
		struct nlmsghdr header;
		struct nlmsgerr error;
	} answer = {0};

	if (send(fd, message, message->header.nlmsg_len, 0) < 0)
		return -1;
	/* netlink answers a request while it is sent */
	if (recv(fd, &answer, sizeof(answer), MSG_DONTWAIT) < 0)
		return -1;
	if (answer.header.nlmsg_type != NLMSG_ERROR) {
		errno = EPROTO;
		return -1;
	}
	errno = -answer.error.error;
	return answer.error.error ? -1 : 0;
}

int queue_open(uint16_t number, uint32_t most)
{
	struct nfqnl_msg_config_cmd bind_queue = {.command = NFQNL_CFG_CMD_BIND, .pf = htons(AF_INET)};
	struct nfqnl_msg_config_params whole = {.copy_range = htonl(0xffff), .copy_mode = NFQNL_COPY_PACKET};
	struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER), bytes = SOCKET_BYTES, saved;
	struct message message;

	if (fd < 0)
		return -1;
	queue_number = number;
	/* with CAP_NET_ADMIN the size may exceed net.core.rmem_max; without it the kernel caps it there */
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)))
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	if (connect(fd, (struct sockaddr *)&kernel, sizeof(kernel)))
		goto failed;
	message_begin(&message, NFQNL_MSG_CONFIG, NLM_F_ACK);
	message_add(&message, NFQA_CFG_CMD, &bind_queue, sizeof(bind_queue));
	if (configure(fd, &message))
		goto failed;
	message_begin(&message, NFQNL_MSG_CONFIG, NLM_F_ACK);
	message_add(&message, NFQA_CFG_PARAMS, &whole, sizeof(whole));
	message_add32(&message, NFQA_CFG_QUEUE_MAXLEN, most);
	message_add32(&message, NFQA_CFG_MASK, NFQA_CFG_F_FAIL_OPEN);
	message_add32(&message, NFQA_CFG_FLAGS, NFQA_CFG_F_FAIL_OPEN);
	if (configure(fd, &message))
		goto failed;
	return fd;
failed:
	saved = errno;
	close(fd);
	errno = saved;
	return -1;
}

static uint32_t number32(const uint8_t *at, size_t len)
{
	uint32_t wire = 0;

	memcpy(&wire, at, len < sizeof(wire) ? len : sizeof(wire));
	return ntohl(wire);
}

/* The attributes of one packet message. False: it has no packet. */
static bool read_packet(uint8_t *data, size_t len, struct queued *packet)
{
	struct nfqnl_msg_packet_hdr header;
	uint32_t full = 0;
	struct nlattr attribute;
	bool known = false;
	size_t at = 0, size;
	uint8_t *value;

	*packet = (struct queued){0};
	for (; len - at >= sizeof(attribute); at += aligned(attribute.nla_len)) {
		memcpy(&attribute, data + at, sizeof(attribute));
		if (attribute.nla_len < sizeof(attribute) || attribute.nla_len > len - at)
			break;
		value = data + at + HEAD;
		size = attribute.nla_len - HEAD;
		switch (attribute.nla_type & NLA_TYPE_MASK) {
		case NFQA_PACKET_HDR:
			if (size < sizeof(header))
				break;
			memcpy(&header, value, sizeof(header));
			packet->id = ntohl(header.packet_id);
			known = true;
			break;
		case NFQA_IFINDEX_INDEV:
			packet->indev = number32(value, size);
			break;
		case NFQA_IFINDEX_OUTDEV:
			packet->outdev = number32(value, size);
			break;
		case NFQA_CAP_LEN:
			full = number32(value, size);
			break;
		case NFQA_PAYLOAD:
			packet->data = value;
			packet->len = size;
			break;
		default:
			break;
		}
		if (aligned(attribute.nla_len) > len - at)
			break;
	}
	packet->whole = packet->data && (!full || full == packet->len);
	return known;
}

void queue_read(uint8_t *data, size_t len, void (*take)(void *context, const struct queued *packet),
		void *context)
{
	const size_t head = NLMSG_LENGTH(sizeof(struct nfgenmsg));
	struct nlmsghdr header;
	struct queued packet;
	size_t at = 0, step;

	for (; len - at >= sizeof(header); at += step) {
		memcpy(&header, data + at, sizeof(header));
		if (header.nlmsg_len < sizeof(header) || header.nlmsg_len > len - at)
			return;
		if (header.nlmsg_type == (NFNL_SUBSYS_QUEUE << 8 | NFQNL_MSG_PACKET) &&
		    header.nlmsg_len >= head &&
		    read_packet(data + at + head, header.nlmsg_len - head, &packet))
			take(context, &packet);
		step = NLMSG_ALIGN(header.nlmsg_len);
		if (step > len - at)
			return;
	}
}

int queue_receive(int fd, void (*take)(void *context, const struct queued *packet), void *context,
		  uint64_t *lost)
{
	static uint8_t buffer[RECEIVE_BYTES] __attribute__((aligned(8)));
	ssize_t n;

	for (;;) {
		n = recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT);
		if (n < 0 && errno == ENOBUFS) {
			++*lost;
			continue;
		}
		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : -1;
		queue_read(buffer, (size_t)n, take, context);
	}
}

int queue_accept(int fd, uint32_t id, const uint8_t *changed, size_t len, uint32_t mark)
{
	struct nfqnl_msg_verdict_hdr verdict = {.verdict = htonl(NF_ACCEPT), .id = htonl(id)};
	struct nlattr payload = {.nla_len = (uint16_t)(HEAD + len), .nla_type = NFQA_PAYLOAD};
	struct iovec parts[3];
	struct msghdr whole = {.msg_iov = parts, .msg_iovlen = changed ? 3 : 1};
	struct message message;

	message_begin(&message, NFQNL_MSG_VERDICT, 0);
	message_add(&message, NFQA_VERDICT_HDR, &verdict, sizeof(verdict));
	if (mark)
		message_add32(&message, NFQA_MARK, mark);
	parts[0] = (struct iovec){&message, message.header.nlmsg_len};
	if (changed) { /* the last attribute needs no padding */
		parts[1] = (struct iovec){&payload, sizeof(payload)};
		parts[2] = (struct iovec){(void *)(uintptr_t)changed, len};
		message.header.nlmsg_len += payload.nla_len;
	}
	return sendmsg(fd, &whole, 0) < 0 ? -1 : 0;
}
