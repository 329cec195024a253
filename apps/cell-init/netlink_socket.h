/* SPDX-License-Identifier: Apache-2.0 */
/* netlink_socket: sockets to the kernel's netlink. Each function returns -1 with the cell's reason set. */
#ifndef NETWARP_NETLINK_SOCKET_H
#define NETWARP_NETLINK_SOCKET_H

#include "cell.h"
#include "netlink_message.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A socket in that namespace; NETLINK_ROUTE or NETLINK_GENERIC. Returns the descriptor. */
int netlink_open(struct cell *cell, int ns, int protocol);
int netlink_send(struct cell *cell, int fd, const char *data, size_t len);
/* One datagram without waiting, in *reply until the next call. Returns its bytes; 0: there is none. */
ssize_t netlink_receive(struct cell *cell, int fd, const char **reply);
/* Fail because of the kernel's answer to request `number` of a step. Always -1. */
int netlink_refused(struct cell *cell, const struct message_error *error, uint32_t number);

#endif
