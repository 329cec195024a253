/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NETWARP_TCP_SENDS_H
#define NETWARP_TCP_SENDS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Like send(fd, buffer + from, to - from, MSG_DONTWAIT | MSG_NOSIGNAL), but every message in a send call of
 * its own (sendmmsg: many of them in one system call). Messages begin at multiples of `message` in the
 * buffer; the first one may be in the kernel's hands in part already.
 */
ssize_t tcp_sends(int fd, uint8_t *buffer, size_t from, size_t to, size_t message);

#endif
