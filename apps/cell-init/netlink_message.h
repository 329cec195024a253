/* SPDX-License-Identifier: Apache-2.0 */
/*
 * netlink_message: checks and numbers netlink requests, reads replies. Works on bytes in memory, makes no
 * system call; tested on the host.
 */
#ifndef NETWARP_NETLINK_MESSAGE_H
#define NETWARP_NETLINK_MESSAGE_H

#include <linux/netlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Read the message at offset *next: copy its header to *header and set *next to the offset of the message
 * after it. Returns false at the end of the data (*next == len), and for a header whose length does not fit
 * (*next is unchanged, so it is less than `len`).
 */
bool message_next(const char *data, size_t len, size_t *next, struct nlmsghdr *header);

/*
 * Check that the bytes are whole requests, each with the flags NLM_F_REQUEST | `flags`. Returns the number of
 * requests, or -1 with *why set to a static text.
 */
int message_check(const char *data, size_t len, uint16_t flags, const char **why);

/*
 * Set nlmsg_seq of the requests to first, first + 1, ..., and nlmsg_pid to 0 (the kernel then fills it in).
 */
void message_number(char *data, size_t len, uint32_t first);

/* Set nlmsg_type of every message: the number of a generic netlink family, which each kernel assigns anew. */
void message_type(char *data, size_t len, uint16_t type);

struct message_error {
	int error;	     /* positive errno; 0: an acknowledgement */
	const char *message; /* the kernel's extended message inside the data, or NULL */
	size_t message_len;
};

/* Read the NLMSG_ERROR message of header->nlmsg_len bytes at `data`. One that is too short is EPROTO. */
struct message_error message_error(const char *data, const struct nlmsghdr *header);

/* Returns IFLA_OPERSTATE of an RTM_NEWLINK message about interface `ifindex`; -1 for any other message. */
int message_operstate(const char *data, const struct nlmsghdr *header, int ifindex);

/* Returns CTRL_ATTR_FAMILY_ID of generic netlink's reply to CTRL_CMD_GETFAMILY; -1 for any other message. */
int message_family(const char *data, const struct nlmsghdr *header);

#endif
