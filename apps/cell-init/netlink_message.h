/* SPDX-License-Identifier: Apache-2.0 */
/* netlink_message: the pure part of netlink: check and number requests, read replies. No system call. */
#ifndef NETWARP_NETLINK_MESSAGE_H
#define NETWARP_NETLINK_MESSAGE_H

#include <linux/netlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Walk one message: its header goes to *header, *next to the offset behind it. Returns false at the end of
 * the data, and for a header whose length does not fit (then *next is left alone, so that it is less than
 * `len`).
 */
bool message_next(const char *data, size_t len, size_t *next, struct nlmsghdr *header);

/*
 * Are these bytes whole requests (NLM_F_REQUEST | `flags`)? Returns how many, or -1 with *why set to a static
 * text.
 */
int message_check(const char *data, size_t len, uint16_t flags, const char **why);

/* Number the requests from `first` on, and clear the sender's port. */
void message_number(char *data, size_t len, uint32_t first);

/* Give every message this type: of a generic netlink family, whose number is the running kernel's own. */
void message_type(char *data, size_t len, uint16_t type);

struct message_error {
	int error;	     /* errno, 0 for an acknowledgement */
	const char *message; /* the kernel's extended message inside the data, or NULL */
	size_t message_len;
};

/* Read an NLMSG_ERROR message that begins at `data` (its whole length: header->nlmsg_len). */
struct message_error message_error(const char *data, const struct nlmsghdr *header);

/* IFLA_OPERSTATE of an RTM_NEWLINK message about `ifindex`; -1 when it is about something else. */
int message_operstate(const char *data, const struct nlmsghdr *header, int ifindex);

/* CTRL_ATTR_FAMILY_ID of generic netlink's answer to CTRL_CMD_GETFAMILY; -1: it is none. */
int message_family(const char *data, const struct nlmsghdr *header);

#endif
