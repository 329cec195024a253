// SPDX-License-Identifier: Apache-2.0
#include "sctp_api.h"

#include "address.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Room for the addresses of one end: far more than SCTP_MAX_ADDRS of any one machine here. */
#define GIVEN_BYTES 16384

/* The bytes of `count` packed addresses; 0 if one is neither IPv4 nor IPv6. */
static socklen_t packed_bytes(const struct sockaddr *packed, int count)
{
	const unsigned char *at = (const unsigned char *)packed;
	union address address = {0};
	socklen_t bytes = 0, one;

	for (; count > 0; count--, bytes += one) {
		memcpy(&address, at + bytes, sizeof(sa_family_t));
		one = address_length(&address.any);
		if (one == 0)
			return 0;
	}
	return bytes;
}

static int tell(int fd, int option, const struct sockaddr *packed, int count)
{
	socklen_t bytes = packed_bytes(packed, count);

	if (bytes == 0) {
		errno = EINVAL;
		return -1;
	}
	return setsockopt(fd, SOL_SCTP, option, packed, bytes);
}

static int ask(int fd, int option, struct sockaddr **packed)
{
	socklen_t len = sizeof(struct sctp_getaddrs) + GIVEN_BYTES;
	struct sctp_getaddrs *given = calloc(1, len);
	int count = -1;

	*packed = NULL;
	if (!given)
		return -1;
	if (getsockopt(fd, SOL_SCTP, option, given, &len) == 0) {
		count = (int)given->addr_num;
		memmove(given, given->addrs, len - sizeof(*given));
		*packed = (struct sockaddr *)given;
	} else {
		free(given);
	}
	return count;
}

int sctp_bindx(int fd, const struct sockaddr *packed, int count)
{
	return tell(fd, SCTP_SOCKOPT_BINDX_ADD, packed, count);
}

int sctp_connectx(int fd, const struct sockaddr *packed, int count)
{
	return tell(fd, SCTP_SOCKOPT_CONNECTX, packed, count);
}

int sctp_getpaddrs(int fd, struct sockaddr **packed)
{
	return ask(fd, SCTP_GET_PEER_ADDRS, packed);
}

int sctp_getladdrs(int fd, struct sockaddr **packed)
{
	return ask(fd, SCTP_GET_LOCAL_ADDRS, packed);
}
