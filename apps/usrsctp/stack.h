/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stack: the few calls of SCTP that sctp-peer needs, by the kernel (kernel.c) and by usrsctp (usrsctp.c),
 * whose headers have structs of the same names and so are never included together. Sockets are one-to-one and
 * block.
 */
#ifndef NETWARP_STACK_H
#define NETWARP_STACK_H

#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

/* SCTP in UDP (RFC 6951 5.1). Of the kernel's the sysctls net.sctp.udp_port and encap_port say it. */
#define STACK_UDP_PORT 9899

struct stack_socket;

/* Functions that return an int give 0, or -1 with errno set; those that return a socket give NULL. */
struct stack {
	int (*init)(void);
	/* a socket bound to all these addresses (of IPv4, `count` of them) */
	struct stack_socket *(*bound)(struct sockaddr *addresses, int count);
	int (*listen)(struct stack_socket *socket);
	struct stack_socket *(*accept)(struct stack_socket *socket);
	int (*connect)(struct stack_socket *socket, struct sockaddr *addresses, int count);
	int (*send)(struct stack_socket *socket, const void *data, size_t bytes);
	/* up to so many bytes; 0: the peer has closed */
	ssize_t (*receive)(struct stack_socket *socket, void *data, size_t bytes);
	void (*close)(struct stack_socket *socket);
};

extern const struct stack stack_kernel, stack_usrsctp;

#endif
