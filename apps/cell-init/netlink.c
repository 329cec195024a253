// SPDX-License-Identifier: Apache-2.0
/* Requests to the kernel: one rtnetlink socket a namespace (generic netlink: one a step), acknowledged with
 * the kernel's own words. */
#include "cell.h"
#include "netlink_message.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/genetlink.h>
#include <linux/if.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define REPLY_BYTES (256 * 1024)
#define DUMP_TRIES  8

#ifndef IF_OPER_UP
#define IF_OPER_UP 6
#endif

static char reply[REPLY_BYTES];

static int open_socket(struct cell *cell, int ns, int protocol)
{
	int fd, on = 1;

	if (ns_enter(cell, ns))
		return -1;
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
	if (fd < 0)
		return cell_fail_errno(cell, errno, "netlink socket");
	setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof(on));
	setsockopt(fd, SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof(on));
	return fd;
}

/* The namespace's own socket, kept out of the way of the descriptors that messages name. */
static int request_socket(struct cell *cell, int ns)
{
	int fd;

	if (cell->netlink_fd[ns])
		return cell->netlink_fd[ns];
	fd = open_socket(cell, ns, NETLINK_ROUTE);
	if (fd < 0)
		return -1;
	cell->netlink_fd[ns] = fcntl(fd, F_DUPFD_CLOEXEC, NS_FD_BASE + NS_MAX);
	close(fd);
	if (cell->netlink_fd[ns] < 0) {
		cell->netlink_fd[ns] = 0;
		return cell_fail_errno(cell, errno, "dup");
	}
	return cell->netlink_fd[ns];
}

static int send_all(struct cell *cell, int fd, const char *data, size_t len)
{
	struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};

	if (sendto(fd, data, len, 0, (struct sockaddr *)&kernel, sizeof(kernel)) != (ssize_t)len)
		return cell_fail_errno(cell, errno, "netlink send");
	return 0;
}

static ssize_t receive(struct cell *cell, int fd, int flags)
{
	ssize_t n = recv(fd, reply, sizeof(reply), flags | MSG_TRUNC);

	if (n < 0)
		return errno == EAGAIN ? 0 : cell_fail_errno(cell, errno, "netlink receive");
	if ((size_t)n > sizeof(reply))
		return cell_fail(cell, "netlink reply of %zd bytes", n);
	return n;
}

static int refused(struct cell *cell, const struct message_error *error, uint32_t number)
{
	return cell_fail_errno(cell, error->error, "netlink request %u refused: %.*s", number,
			       error->message ? (int)error->message_len : 2,
			       error->message ? error->message : "no");
}

/* Sends requests and reads an acknowledgement of each. */
static int exchange(struct cell *cell, int fd, const struct value *data)
{
	uint32_t first = cell->sequence + 1;
	struct message_error error;
	struct nlmsghdr header;
	int pending, result = 0;
	size_t next, at;
	const char *why;
	ssize_t n;

	pending = message_check(data->data, data->len, NLM_F_ACK, &why);
	cell->sequence += (uint32_t)pending;
	message_number(data->data, data->len, first);
	if (send_all(cell, fd, data->data, data->len))
		return -1;
	/* netlink answers while we send: every ack is there, none is waited for */
	while (pending > 0) {
		n = receive(cell, fd, MSG_DONTWAIT);
		if (n < 0)
			return -1;
		if (n == 0)
			return cell_fail(cell, "%d netlink requests were not acknowledged", pending);
		for (next = at = 0; message_next(reply, (size_t)n, &next, &header); at = next) {
			if (header.nlmsg_type != NLMSG_ERROR ||
			    header.nlmsg_seq - first > cell->sequence - first)
				continue;
			pending--;
			error = message_error(reply + at, &header);
			if (error.error && !result)
				result = refused(cell, &error, header.nlmsg_seq - first + 1);
		}
	}
	return result;
}

/* The number this kernel gave a generic netlink family. */
static int family_id(struct cell *cell, int fd, const char *name)
{
	struct {
		struct nlmsghdr header;
		struct genlmsghdr generic;
		struct nlattr attribute;
		char name[GENL_NAMSIZ];
	} query = {
	    .header = {.nlmsg_len = sizeof(query), .nlmsg_type = GENL_ID_CTRL, .nlmsg_flags = NLM_F_REQUEST},
	    .generic = {.cmd = CTRL_CMD_GETFAMILY, .version = 1},
	    .attribute = {.nla_len = sizeof(query.attribute) + sizeof(query.name),
			  .nla_type = CTRL_ATTR_FAMILY_NAME},
	};
	struct nlmsghdr header;
	size_t next, at;
	ssize_t n;
	int found;

	if (strlen(name) >= sizeof(query.name))
		return cell_fail(cell, "'%.40s' is too long for a generic netlink family", name);
	memcpy(query.name, name, strlen(name));
	query.header.nlmsg_seq = ++cell->sequence;
	if (send_all(cell, fd, (const char *)&query, sizeof(query)))
		return -1;
	while ((n = receive(cell, fd, MSG_DONTWAIT)) > 0)
		for (next = at = 0; message_next(reply, (size_t)n, &next, &header); at = next) {
			found = message_family(reply + at, &header);
			if (found >= 0)
				return found;
		}
	return n < 0 ? -1 : cell_fail(cell, "this kernel has no generic netlink family '%s'", name);
}

static int generic_request(struct cell *cell, const struct step *step, const char *name)
{
	const struct value *data = step_value(step, "data");
	int fd = open_socket(cell, (int)step_int(step, "ns", 0), NETLINK_GENERIC), family, result = -1;

	if (fd < 0)
		return -1;
	family = family_id(cell, fd, name);
	if (family >= 0) {
		message_type(data->data, data->len, (uint16_t)family);
		result = exchange(cell, fd, data);
	}
	close(fd);
	return result;
}

int netlink_request(struct cell *cell, const struct step *step)
{
	const char *family = step_text(step, "family");
	int fd;

	if (family)
		return generic_request(cell, step, family);
	fd = request_socket(cell, (int)step_int(step, "ns", 0));
	return fd < 0 ? -1 : exchange(cell, fd, step_value(step, "data"));
}

/* Reads one dump into the open record. 0 done, 1 interrupted by a change (ask again), -1 failed. */
static int read_dump(struct cell *cell, int fd)
{
	bool done = false, changed = false;
	struct message_error error;
	struct nlmsghdr header;
	size_t next, at;
	ssize_t n;

	while (!done) {
		n = receive(cell, fd, MSG_DONTWAIT);
		if (n < 0)
			return -1;
		if (n == 0)
			return cell_fail(cell, "the netlink dump has no end");
		ndjson_hex(&cell->out, NULL, reply, (size_t)n);
		for (next = at = 0; message_next(reply, (size_t)n, &next, &header); at = next) {
			if (header.nlmsg_seq != cell->sequence)
				continue;
			changed |= (header.nlmsg_flags & NLM_F_DUMP_INTR) != 0;
			done |= header.nlmsg_type == NLMSG_DONE || header.nlmsg_type == NLMSG_ERROR;
			if (header.nlmsg_type != NLMSG_ERROR)
				continue;
			error = message_error(reply + at, &header);
			if (error.error)
				return refused(cell, &error, 1);
		}
	}
	return changed;
}

int netlink_dump(struct cell *cell, const struct step *step)
{
	const struct value *data = step_value(step, "data");
	int fd = request_socket(cell, (int)step_int(step, "ns", 0));
	int tries, result = 1;

	if (fd < 0)
		return -1;
	for (tries = 0; result == 1 && tries < DUMP_TRIES; tries++) {
		message_number(data->data, data->len, ++cell->sequence);
		if (send_all(cell, fd, data->data, data->len))
			return -1;
		ndjson_begin(&cell->out, "dump");
		ndjson_int(&cell->out, "step", step->line);
		ndjson_str(&cell->out, "label", step_text(step, "label"));
		ndjson_int(&cell->out, "ns", step_int(step, "ns", 0));
		ndjson_array_begin(&cell->out, "replies");
		result = read_dump(cell, fd);
		ndjson_array_end(&cell->out);
	}
	if (result < 0)
		return -1;
	if (result == 1)
		return cell_fail(cell, "the dump was interrupted by changes %d times", DUMP_TRIES);
	return record_end_line(cell);
}

/* IFLA_OPERSTATE in whatever is waiting on the socket, the last word; -1: nothing about this link. */
static int read_operstate(struct cell *cell, int fd, int ifindex, int *state)
{
	struct message_error error;
	struct nlmsghdr header;
	size_t next, at;
	ssize_t n;
	int found;

	while ((n = receive(cell, fd, MSG_DONTWAIT)) > 0) {
		for (next = at = 0; message_next(reply, (size_t)n, &next, &header); at = next) {
			found = message_operstate(reply + at, &header, ifindex);
			if (found >= 0)
				*state = found;
			if (header.nlmsg_type != NLMSG_ERROR)
				continue;
			error = message_error(reply + at, &header);
			if (error.error)
				return refused(cell, &error, 1);
		}
	}
	return n < 0 ? -1 : 0;
}

static int wait_operstate(struct cell *cell, const struct step *step, int fd, int ifindex)
{
	struct {
		struct nlmsghdr header;
		struct ifinfomsg info;
	} query = {
	    .header = {.nlmsg_len = sizeof(query), .nlmsg_type = RTM_GETLINK, .nlmsg_flags = NLM_F_REQUEST},
	    .info = {.ifi_family = AF_UNSPEC, .ifi_index = ifindex},
	};
	int64_t timeout_ns = step_int(step, "timeout_ns", 0);
	unsigned int wake = 0;
	int state = -1;

	if (send_all(cell, fd, (const char *)&query, sizeof(query)) || loop_add(cell, fd, WAKE_WATCH))
		return -1;
	if (read_operstate(cell, fd, ifindex, &state))
		return -1;
	if (state != IF_OPER_UP && loop_wake_in(cell, timeout_ns))
		return -1;
	while (state != IF_OPER_UP) {
		if (wake & WAKE_TIMER)
			return cell_fail(cell, "interface %d is not up after %lld ns (operstate %d)", ifindex,
					 (long long)timeout_ns, state);
		if (loop_wait(cell, &wake) || read_operstate(cell, fd, ifindex, &state))
			return -1;
	}
	return loop_wake_at(cell, 0);
}

int netlink_operstate(struct cell *cell, const struct step *step)
{
	int fd = open_socket(cell, (int)step_int(step, "ns", 0), NETLINK_ROUTE), result = -1,
	    group = RTNLGRP_LINK;

	if (fd < 0)
		return -1;
	if (setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group)))
		cell_fail_errno(cell, errno, "RTNLGRP_LINK");
	else
		result = wait_operstate(cell, step, fd, (int)step_int(step, "ifindex", 0));
	loop_remove(cell, fd);
	close(fd);
	return result;
}
