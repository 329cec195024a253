/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sctp_api: SCTP's socket interface: the structures and options of the kernel's headers, and the functions
 * of RFC 6458 section 9 that lksctp (libsctp) provides.
 *
 * -DWITHOUT_LIBSCTP: for machines without that library (arm64: docs/android.md). The functions then fail
 * with ENOSYS: a socket is bound to one address and connected by connect(), and an association's address
 * lists cannot be read.
 */
#ifndef NETWARP_SCTP_API_H
#define NETWARP_SCTP_API_H

/* before linux/sctp.h, which needs its types */
#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

#ifndef WITHOUT_LIBSCTP

/* takes linux/sctp.h from the built kernel's headers, with all that this kernel has */
#include <netinet/sctp.h>

#define HAVE_LIBSCTP true

#else

#include <linux/sctp.h>

#include <errno.h>
#include <stddef.h>
#define HAVE_LIBSCTP false
#define SOL_SCTP     IPPROTO_SCTP

static inline int sctp_bindx(int fd, struct sockaddr *packed, int count, int flags)
{
	(void)fd, (void)packed, (void)count, (void)flags;
	errno = ENOSYS;
	return -1;
}

static inline int sctp_connectx(int fd, struct sockaddr *packed, int count, sctp_assoc_t *id)
{
	(void)fd, (void)packed, (void)count, (void)id;
	errno = ENOSYS;
	return -1;
}

static inline int sctp_getpaddrs(int fd, sctp_assoc_t id, struct sockaddr **packed)
{
	(void)fd, (void)id;
	*packed = NULL;
	errno = ENOSYS;
	return -1;
}

static inline int sctp_getladdrs(int fd, sctp_assoc_t id, struct sockaddr **packed)
{
	return sctp_getpaddrs(fd, id, packed);
}

static inline int sctp_freepaddrs(struct sockaddr *packed)
{
	(void)packed;
	return 0;
}

static inline int sctp_freeladdrs(struct sockaddr *packed)
{
	return sctp_freepaddrs(packed);
}

#endif

#endif
