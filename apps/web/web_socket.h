/* SPDX-License-Identifier: Apache-2.0 */
/* web_socket: reading and writing a connection of a page, TCP or SCTP, and waiting for many of them. */
#ifndef NETWARP_WEB_SOCKET_H
#define NETWARP_WEB_SOCKET_H

#include "../traffic/transport.h"
#include "web_config.h"

#define WEB_EVENTS 64

/* Waits for many sockets, a time and signals: an epoll of the sockets inside that of the waiter. */
struct web_waiter {
	struct waiter waiter;
	int epoll_fd;
};

int web_waiter_open(struct web_waiter *waiter);
int web_waiter_add(struct web_waiter *waiter, int fd, void *owner);
void web_waiter_close(struct web_waiter *waiter);

enum web_io {
	WEB_DATA,   /* some came, or went */
	WEB_EMPTY,  /* nothing now */
	WEB_CLOSED, /* the peer has closed */
	WEB_FAILED  /* errno says why */
};

/* Set what a page needs of the socket before it listens or connects. 0, or -1 and errno. */
int web_socket_prepare(int fd, const struct web_config *config, bool server);
/* --order prio: the lower a stream of a connection that is up, the sooner its turn. 0, or -1 and errno. */
int web_socket_prioritise(int fd, const struct web_config *config);
/* 0 if what was asked for is in force on the connection, else -1 and errno. */
int web_socket_check(int fd, const struct web_config *config, bool server);

/* At most `size` bytes; SCTP: of one message of *stream. */
enum web_io web_read(int fd, bool sctp, uint8_t *to, size_t size, size_t *len, uint16_t *stream);
/* TCP may take less than `len`, SCTP takes a message or nothing. */
enum web_io web_write(int fd, bool sctp, const uint8_t *from, size_t len, size_t *written, uint16_t stream);

#endif
