// SPDX-License-Identifier: Apache-2.0
/* Documented in web_socket.h. */
#include "web_socket.h"

#include "../traffic/sctp_api.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static const char *const orders[] = {[SCTP_SS_FCFS] = "fcfs", [SCTP_SS_PRIO] = "prio", [SCTP_SS_RR] = "rr"};

int web_waiter_open(struct web_waiter *waiter)
{
	waiter->epoll_fd = -1;
	if (waiter_open(&waiter->waiter))
		return -1;
	waiter->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	return waiter->epoll_fd < 0 ? -1 : waiter_watch(&waiter->waiter, waiter->epoll_fd, false);
}

int web_waiter_add(struct web_waiter *waiter, int fd, void *owner)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = owner};

	return epoll_ctl(waiter->epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

void web_waiter_close(struct web_waiter *waiter)
{
	if (waiter->epoll_fd >= 0)
		close(waiter->epoll_fd);
	waiter_close(&waiter->waiter);
}

static uint32_t scheduler_of(const char *order)
{
	uint32_t number = 0;

	while (strcmp(orders[number], order) != 0)
		number++;
	return number;
}

/* The streams a server sends on: an end that is connected to offers as many as its socket says. */
static int set_streams(int fd, int64_t streams)
{
	struct sctp_initmsg init = {.sinit_num_ostreams = (uint16_t)streams};

	return setsockopt(fd, SOL_SCTP, SCTP_INITMSG, &init, sizeof(init));
}

int web_socket_prepare(int fd, const struct web_config *config, bool server)
{
	struct sctp_assoc_value value = {.assoc_value = 1};
	int on = 1;

	if (config_protocol(&config->transport) != PROTOCOL_SCTP)
		return 0;
	if (setsockopt(fd, SOL_SCTP, SCTP_RECVRCVINFO, &on, sizeof(on)))
		return -1;
	if (config->interleave) {
		if (setsockopt(fd, SOL_SCTP, SCTP_FRAGMENT_INTERLEAVE, &on, sizeof(on)) ||
		    setsockopt(fd, SOL_SCTP, SCTP_INTERLEAVING_SUPPORTED, &value, sizeof(value)))
			return -1;
	}
	if (!server)
		return 0;
	if (config->order) {
		value.assoc_value = scheduler_of(config->order);
		if (setsockopt(fd, SOL_SCTP, SCTP_STREAM_SCHEDULER, &value, sizeof(value)))
			return -1;
	}
	return set_streams(fd, config->streams);
}

int web_socket_prioritise(int fd, const struct web_config *config)
{
	struct sctp_stream_value value;
	socklen_t len = sizeof(value);
	int64_t stream;

	if (config_protocol(&config->transport) != PROTOCOL_SCTP || !config->order ||
	    strcmp(config->order, "prio") != 0)
		return 0;
	/* of equal priority, as all are at first, streams take turns */
	for (stream = 0; stream < config->streams; stream++) {
		memset(&value, 0, sizeof(value));
		value.stream_id = value.stream_value = (uint16_t)stream;
		if (setsockopt(fd, SOL_SCTP, SCTP_STREAM_SCHEDULER_VALUE, &value, sizeof(value)) ||
		    getsockopt(fd, SOL_SCTP, SCTP_STREAM_SCHEDULER_VALUE, &value, &len))
			return -1;
		if (value.stream_value != stream) {
			errno = EINVAL;
			return -1;
		}
	}
	return 0;
}

int web_socket_check(int fd, const struct web_config *config, bool server)
{
	struct sctp_assoc_value value = {0};
	struct sctp_status status = {0};
	socklen_t len = sizeof(value), status_len = sizeof(status);

	if (config_protocol(&config->transport) != PROTOCOL_SCTP)
		return 0;
	errno = EINVAL;
	if (getsockopt(fd, SOL_SCTP, SCTP_STATUS, &status, &status_len))
		return -1;
	if (server && status.sstat_outstrms < config->streams)
		return -1;
	if (server && config->order &&
	    (getsockopt(fd, SOL_SCTP, SCTP_STREAM_SCHEDULER, &value, &len) ||
	     value.assoc_value != scheduler_of(config->order)))
		return -1;
	memset(&value, 0, sizeof(value));
	len = sizeof(value);
	if (config->interleave &&
	    (getsockopt(fd, SOL_SCTP, SCTP_INTERLEAVING_SUPPORTED, &value, &len) || !value.assoc_value))
		return -1;
	return 0;
}

static enum web_io read_error(void)
{
	if (errno == EAGAIN || errno == EINTR)
		return WEB_EMPTY;
	return errno == ECONNRESET || errno == ENOTCONN || errno == EPIPE || errno == ESHUTDOWN ? WEB_CLOSED
												: WEB_FAILED;
}

static enum web_io read_message(int fd, uint8_t *to, size_t size, size_t *len, uint16_t *stream)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(struct sctp_rcvinfo))];
	struct iovec vector = {.iov_base = to, .iov_len = size};
	struct msghdr message = {
	    .msg_iov = &vector, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
	struct sctp_rcvinfo info;
	struct cmsghdr *header;
	ssize_t n;

	do {
		message.msg_controllen = sizeof(control);
		message.msg_flags = 0;
		n = recvmsg(fd, &message, MSG_DONTWAIT);
	} while (n > 0 && message.msg_flags & MSG_NOTIFICATION);
	if (n < 0)
		return read_error();
	if (n == 0)
		return WEB_CLOSED;
	header = CMSG_FIRSTHDR(&message);
	if (!header || header->cmsg_level != IPPROTO_SCTP || header->cmsg_type != SCTP_RCVINFO) {
		errno = EPROTO;
		return WEB_FAILED;
	}
	memcpy(&info, CMSG_DATA(header), sizeof(info));
	*stream = info.rcv_sid;
	*len = (size_t)n;
	return WEB_DATA;
}

enum web_io web_read(int fd, bool sctp, uint8_t *to, size_t size, size_t *len, uint16_t *stream)
{
	ssize_t n;

	if (sctp)
		return read_message(fd, to, size, len, stream);
	*stream = 0;
	n = recv(fd, to, size, MSG_DONTWAIT);
	if (n < 0)
		return read_error();
	*len = (size_t)n;
	return n ? WEB_DATA : WEB_CLOSED;
}

enum web_io web_write(int fd, bool sctp, const uint8_t *from, size_t len, size_t *written, uint16_t stream)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(struct sctp_sndinfo))];
	struct sctp_sndinfo info = {.snd_sid = stream};
	struct iovec vector = {.iov_base = (void *)(uintptr_t)from, .iov_len = len};
	struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1};
	struct cmsghdr *header;
	ssize_t n;

	if (sctp) {
		message.msg_control = control;
		message.msg_controllen = sizeof(control);
		header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = IPPROTO_SCTP;
		header->cmsg_type = SCTP_SNDINFO;
		header->cmsg_len = CMSG_LEN(sizeof(info));
		memcpy(CMSG_DATA(header), &info, sizeof(info));
	}
	n = sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0)
		return read_error();
	*written = (size_t)n;
	return WEB_DATA;
}
