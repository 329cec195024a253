/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_sends: sends each message of a TCP flow by a send call of its own (option --separate-sends). */
#ifndef NETWARP_TCP_SENDS_H
#define NETWARP_TCP_SENDS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Like send(fd, buffer + from, to - from, MSG_DONTWAIT | MSG_NOSIGNAL), but with one send per message;
 * sendmmsg() makes many of them in one system call. Messages begin at multiples of `message` bytes in the
 * buffer. `from` may be inside a message: the kernel has accepted its beginning. Returns the number of
 * bytes accepted, or -1 with errno.
 */
ssize_t tcp_sends(int fd, uint8_t *buffer, size_t from, size_t to, size_t message);

#endif
