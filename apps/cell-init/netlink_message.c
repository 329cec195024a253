// SPDX-License-Identifier: Apache-2.0
/* Documented in netlink_message.h. */
#include "netlink_message.h"

#include <errno.h>
#include <linux/genetlink.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <string.h>

/* netlink's own alignment, of messages and of attributes */
static size_t aligned(size_t len)
{
	return (len + 3) & ~(size_t)3;
}

bool message_next(const char *data, size_t len, size_t *next, struct nlmsghdr *header)
{
	size_t at = *next;

	if (len - at < sizeof(*header))
		return false;
	memcpy(header, data + at, sizeof(*header));
	if (header->nlmsg_len < sizeof(*header) || header->nlmsg_len > len - at)
		return false;
	/* the last message may lack its padding */
	at += aligned(header->nlmsg_len);
	*next = at < len ? at : len;
	return true;
}

int message_check(const char *data, size_t len, uint16_t flags, const char **why)
{
	struct nlmsghdr header;
	size_t next = 0;
	int count = 0;

	while (message_next(data, len, &next, &header)) {
		if ((header.nlmsg_flags & (NLM_F_REQUEST | flags)) != (NLM_F_REQUEST | flags)) {
			*why = "a message lacks NLM_F_REQUEST, NLM_F_ACK or NLM_F_DUMP";
			return -1;
		}
		if (header.nlmsg_type < NLMSG_MIN_TYPE) {
			*why = "a message is a control message";
			return -1;
		}
		count++;
	}
	if (next != len || count == 0) {
		*why = "the bytes are not whole netlink messages";
		return -1;
	}
	return count;
}

void message_number(char *data, size_t len, uint32_t first)
{
	struct nlmsghdr header;
	size_t at = 0, next = 0;

	while (message_next(data, len, &next, &header)) {
		header.nlmsg_seq = first++;
		header.nlmsg_pid = 0;
		memcpy(data + at, &header, sizeof(header));
		at = next;
	}
}

void message_type(char *data, size_t len, uint16_t type)
{
	struct nlmsghdr header;
	size_t at = 0, next = 0;

	while (message_next(data, len, &next, &header)) {
		header.nlmsg_type = type;
		memcpy(data + at, &header, sizeof(header));
		at = next;
	}
}

/* The attribute at *at of data[0..len); moves *at behind it. */
static bool attribute_next(const char *data, size_t len, size_t *at, struct nlattr *attribute)
{
	if (*at > len || len - *at < sizeof(*attribute))
		return false;
	memcpy(attribute, data + *at, sizeof(*attribute));
	if (attribute->nla_len < sizeof(*attribute) || attribute->nla_len > len - *at)
		return false;
	*at += aligned(attribute->nla_len);
	return true;
}

struct message_error message_error(const char *data, const struct nlmsghdr *header)
{
	struct message_error found = {.error = EPROTO};
	struct nlmsgerr error;
	struct nlattr attribute;
	size_t len = header->nlmsg_len, at, begin;

	if (len < NLMSG_HDRLEN + sizeof(error))
		return found;
	memcpy(&error, data + NLMSG_HDRLEN, sizeof(error));
	found.error = error.error < 0 ? -error.error : 0;
	if (!(header->nlmsg_flags & NLM_F_ACK_TLVS))
		return found;
	at = NLMSG_HDRLEN + sizeof(error);
	/* without NLM_F_CAPPED the request itself stands before the attributes */
	if (!(header->nlmsg_flags & NLM_F_CAPPED) && error.msg.nlmsg_len > sizeof(error.msg))
		at += aligned(error.msg.nlmsg_len) - sizeof(error.msg);
	for (begin = at; attribute_next(data, len, &at, &attribute); begin = at) {
		if ((attribute.nla_type & NLA_TYPE_MASK) != NLMSGERR_ATTR_MSG)
			continue;
		found.message = data + begin + sizeof(attribute);
		found.message_len = strnlen(found.message, attribute.nla_len - sizeof(attribute));
	}
	return found;
}

int message_operstate(const char *data, const struct nlmsghdr *header, int ifindex)
{
	size_t len = header->nlmsg_len, at = NLMSG_HDRLEN + aligned(sizeof(struct ifinfomsg)), begin;
	struct nlattr attribute;
	struct ifinfomsg info;

	if (header->nlmsg_type != RTM_NEWLINK || len < NLMSG_HDRLEN + sizeof(info))
		return -1;
	memcpy(&info, data + NLMSG_HDRLEN, sizeof(info));
	if (info.ifi_index != ifindex)
		return -1;
	for (begin = at; attribute_next(data, len, &at, &attribute); begin = at)
		if ((attribute.nla_type & NLA_TYPE_MASK) == IFLA_OPERSTATE &&
		    attribute.nla_len > sizeof(attribute))
			return (unsigned char)data[begin + sizeof(attribute)];
	return -1;
}

int message_family(const char *data, const struct nlmsghdr *header)
{
	size_t len = header->nlmsg_len, at = NLMSG_HDRLEN + GENL_HDRLEN, begin;
	struct nlattr attribute;
	uint16_t id;

	if (header->nlmsg_type != GENL_ID_CTRL)
		return -1;
	for (begin = at; attribute_next(data, len, &at, &attribute); begin = at) {
		if ((attribute.nla_type & NLA_TYPE_MASK) != CTRL_ATTR_FAMILY_ID ||
		    attribute.nla_len < sizeof(attribute) + sizeof(id))
			continue;
		memcpy(&id, data + begin + sizeof(attribute), sizeof(id));
		return id;
	}
	return -1;
}
