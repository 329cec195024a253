// SPDX-License-Identifier: Apache-2.0
/* The kernel's SCTP (stack.h). */
#include "stack.h"

#include <netinet/in.h>
#include <netinet/sctp.h>
#include <stdint.h>
#include <unistd.h>

/* a socket is its descriptor */
static int fd_of(struct stack_socket *socket)
{
	return (int)(intptr_t)socket;
}

static struct stack_socket *socket_of(int fd)
{
	return fd < 0 ? NULL : (struct stack_socket *)(intptr_t)fd;
}

static int kernel_init(void)
{
	return 0;
}

static struct stack_socket *kernel_bound(struct sockaddr *addresses, int count)
{
	const int on = 1;
	int fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);

	if (fd < 0)
		return NULL;
	if (setsockopt(fd, IPPROTO_SCTP, SCTP_NODELAY, &on, sizeof(on)) ||
	    sctp_bindx(fd, addresses, count, SCTP_BINDX_ADD_ADDR)) {
		close(fd);
		return NULL;
	}
	return socket_of(fd);
}

static int kernel_listen(struct stack_socket *socket)
{
	return listen(fd_of(socket), 8);
}

static struct stack_socket *kernel_accept(struct stack_socket *socket)
{
	return socket_of(accept(fd_of(socket), NULL, NULL));
}

static int kernel_connect(struct stack_socket *socket, struct sockaddr *addresses, int count)
{
	return sctp_connectx(fd_of(socket), addresses, count, NULL);
}

static int kernel_send(struct stack_socket *socket, const void *data, size_t bytes)
{
	return send(fd_of(socket), data, bytes, MSG_NOSIGNAL) < 0 ? -1 : 0;
}

static ssize_t kernel_receive(struct stack_socket *socket, void *data, size_t bytes)
{
	return recv(fd_of(socket), data, bytes, 0);
}

static void kernel_close(struct stack_socket *socket)
{
	close(fd_of(socket));
}

const struct stack stack_kernel = {
    .init = kernel_init,
    .bound = kernel_bound,
    .listen = kernel_listen,
    .accept = kernel_accept,
    .connect = kernel_connect,
    .send = kernel_send,
    .receive = kernel_receive,
    .close = kernel_close,
};
