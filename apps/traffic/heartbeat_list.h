/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heartbeat_list: a file of HEARTBEATs that an end of an SCTP association sends (--heartbeats;
 * docs/formats.md, The apps), in place of those of the kernel:
 *
 *	TIME_NS ADDRESS
 *	...
 *	TIME_NS kernel
 *
 * TIME_NS counts from the flow's start and never goes back. ADDRESS: of the peer. `kernel`: from then on the
 * kernel sends its own; without this line it never does.
 */
#ifndef NETWARP_HEARTBEAT_LIST_H
#define NETWARP_HEARTBEAT_LIST_H

#include "address.h"

#include <stddef.h>
#include <stdint.h>

#define HEARTBEATS_MAX 100000 /* in one file */

struct heartbeat {
	int64_t at_ns;	  /* after the flow's start */
	union address to; /* with family AF_UNSPEC: `kernel` */
};

struct heartbeat_list {
	struct heartbeat *items;
	size_t count, next; /* next: the first that was not sent */
};

/* Read `path`; it may be empty. 0, or -1 with the reason, which names the line. */
int heartbeat_list_read(struct heartbeat_list *list, const char *path, char *reason, size_t size);
void heartbeat_list_free(struct heartbeat_list *list);

#endif
