// SPDX-License-Identifier: Apache-2.0
/* usrsctp, SCTP in user space (stack.h), as the distribution's library has it; over UDP alone. */
#include "stack.h"

#include <arpa/inet.h>
#include <usrsctp.h>

static struct socket *of(struct stack_socket *socket)
{
	return (struct socket *)socket;
}

static int usrsctp_start(void)
{
	usrsctp_init(STACK_UDP_PORT, NULL, NULL);
	return 0;
}

static struct stack_socket *usrsctp_bound(struct sockaddr *addresses, int count)
{
	const struct sctp_udpencaps udp = {.sue_address.ss_family = AF_INET,
					   .sue_port = htons(STACK_UDP_PORT)};
	struct socket *socket = usrsctp_socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP, NULL, NULL, 0, NULL);
	const int on = 1;

	if (!socket)
		return NULL;
	if (usrsctp_setsockopt(socket, IPPROTO_SCTP, SCTP_NODELAY, &on, sizeof(on)) ||
	    usrsctp_setsockopt(socket, IPPROTO_SCTP, SCTP_REMOTE_UDP_ENCAPS_PORT, &udp, sizeof(udp)) ||
	    usrsctp_bindx(socket, addresses, count, SCTP_BINDX_ADD_ADDR)) {
		usrsctp_close(socket);
		return NULL;
	}
	return (struct stack_socket *)socket;
}

static int usrsctp_listens(struct stack_socket *socket)
{
	return usrsctp_listen(of(socket), 8);
}

static struct stack_socket *usrsctp_accepts(struct stack_socket *socket)
{
	return (struct stack_socket *)usrsctp_accept(of(socket), NULL, NULL);
}

static int usrsctp_connects(struct stack_socket *socket, struct sockaddr *addresses, int count)
{
	return usrsctp_connectx(of(socket), addresses, count, NULL);
}

static int usrsctp_send(struct stack_socket *socket, const void *data, size_t bytes)
{
	return usrsctp_sendv(of(socket), data, bytes, NULL, 0, NULL, 0, SCTP_SENDV_NOINFO, 0) < 0 ? -1 : 0;
}

static ssize_t usrsctp_receive(struct stack_socket *socket, void *data, size_t bytes)
{
	socklen_t from_bytes = 0, info_bytes = 0;
	unsigned int kind;
	int flags = 0;

	return usrsctp_recvv(of(socket), data, bytes, NULL, &from_bytes, NULL, &info_bytes, &kind, &flags);
}

static void usrsctp_closes(struct stack_socket *socket)
{
	usrsctp_close(of(socket));
}

const struct stack stack_usrsctp = {
    .init = usrsctp_start,
    .bound = usrsctp_bound,
    .listen = usrsctp_listens,
    .accept = usrsctp_accepts,
    .connect = usrsctp_connects,
    .send = usrsctp_send,
    .receive = usrsctp_receive,
    .close = usrsctp_closes,
};
