/* SPDX-License-Identifier: Apache-2.0 */
/*
 * netlink_socket: opens netlink sockets, sends requests, receives replies. On failure each function returns
 * -1 with the cell's reason set.
 */
#ifndef NETWARP_NETLINK_SOCKET_H
#define NETWARP_NETLINK_SOCKET_H

#include "cell.h"
#include "netlink_message.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Open a socket in namespace `ns` (this process stays in it) for NETLINK_ROUTE or NETLINK_GENERIC. It asks
 * for extended error messages (NETLINK_EXT_ACK) and for errors without the request (NETLINK_CAP_ACK).
 * Returns the descriptor.
 */
int netlink_open(struct cell *cell, int ns, int protocol);
int netlink_send(struct cell *cell, int fd, const char *data, size_t len);
/*
 * Receive one datagram without waiting. *reply points to it until the next call. Returns its length in
 * bytes; 0: there is none.
 */
ssize_t netlink_receive(struct cell *cell, int fd, const char **reply);
/*
 * Fail the cell with the kernel's error and its extended message to request `number` of a step. Returns -1.
 */
int netlink_refused(struct cell *cell, const struct message_error *error, uint32_t number);

#endif
