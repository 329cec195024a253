/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sctp_api: the SCTP of the kernel's own headers, and the functions of RFC 6458 section 9 as the system calls
 * they are on Linux. No library: there is none for every machine a sender may be built for (arm64:
 * docs/android.md), and a distribution's netinet/sctp.h may be older than the kernel that runs.
 */
#ifndef NETWARP_SCTP_API_H
#define NETWARP_SCTP_API_H

/* before linux/sctp.h, which needs its types */
#include <netinet/in.h>
#include <sys/socket.h>

#include <linux/sctp.h>

#ifndef SOL_SCTP
#define SOL_SCTP IPPROTO_SCTP
#endif

/* Add packed addresses to a socket. 0, or -1 and errno. */
int sctp_bindx(int fd, const struct sockaddr *packed, int count);
/* Connect to a peer that has all of these addresses. -1 and errno (EINPROGRESS), else not negative. */
int sctp_connectx(int fd, const struct sockaddr *packed, int count);
/*
 * The peer's or the own addresses of a one-to-one style socket, packed, in *packed (free() them); returns how
 * many, -1 and errno.
 */
int sctp_getpaddrs(int fd, struct sockaddr **packed);
int sctp_getladdrs(int fd, struct sockaddr **packed);

#endif
