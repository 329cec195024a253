// SPDX-License-Identifier: Apache-2.0
/* Documented in tcp_sends.h. */
#include "tcp_sends.h"

#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#define MESSAGES_MAX 256

/* One system call; *whole: the kernel took all that was offered. */
static ssize_t some(int fd, uint8_t *buffer, size_t from, size_t to, size_t message, bool *whole)
{
	struct mmsghdr messages[MESSAGES_MAX];
	struct iovec vectors[MESSAGES_MAX];
	size_t offered = from, taken = 0, len;
	unsigned int count = 0;
	int n, i;

	memset(messages, 0, sizeof(messages));
	for (; count < MESSAGES_MAX && offered < to; count++, offered += len) {
		len = message - offered % message;
		if (len > to - offered)
			len = to - offered;
		vectors[count] = (struct iovec){.iov_base = buffer + offered, .iov_len = len};
		messages[count].msg_hdr.msg_iov = &vectors[count];
		messages[count].msg_hdr.msg_iovlen = 1;
	}
	n = sendmmsg(fd, messages, count, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0)
		return -1;
	for (i = 0; i < n; i++)
		taken += messages[i].msg_len;
	*whole = from + taken == offered;
	return (ssize_t)taken;
}

ssize_t tcp_sends(int fd, uint8_t *buffer, size_t from, size_t to, size_t message)
{
	size_t at = from;
	bool whole = true;
	ssize_t n;

	while (whole && at < to) {
		n = some(fd, buffer, at, to, message, &whole);
		if (n < 0)
			return at > from ? (ssize_t)(at - from) : -1;
		at += (size_t)n;
	}
	return (ssize_t)(at - from);
}
