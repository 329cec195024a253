// SPDX-License-Identifier: Apache-2.0
/* Documented in netlink_socket.h. */
#include "netlink_socket.h"

#include "namespace.h"

#include <errno.h>
#include <linux/netlink.h>
#include <sys/socket.h>

#define REPLY_BYTES (256 * 1024)

int netlink_open(struct cell *cell, int ns, int protocol)
{
	int fd, on = 1;

	if (namespace_enter(cell, ns))
		return -1;
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
	if (fd < 0)
		return cell_fail_errno(cell, errno, "netlink socket");
	setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof(on));
	setsockopt(fd, SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof(on));
	return fd;
}

int netlink_send(struct cell *cell, int fd, const char *data, size_t len)
{
	struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};

	if (sendto(fd, data, len, 0, (struct sockaddr *)&kernel, sizeof(kernel)) != (ssize_t)len)
		return cell_fail_errno(cell, errno, "netlink send");
	return 0;
}

ssize_t netlink_receive(struct cell *cell, int fd, const char **reply)
{
	static char buffer[REPLY_BYTES];
	ssize_t n = recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT | MSG_TRUNC);

	*reply = buffer;
	if (n < 0)
		return errno == EAGAIN ? 0 : cell_fail_errno(cell, errno, "netlink receive");
	if ((size_t)n > sizeof(buffer))
		return cell_fail(cell, "netlink reply of %zd bytes", n);
	return n;
}

int netlink_refused(struct cell *cell, const struct message_error *error, uint32_t number)
{
	return cell_fail_errno(cell, error->error, "netlink request %u refused: %.*s", number,
			       error->message ? (int)error->message_len : 2,
			       error->message ? error->message : "no");
}
