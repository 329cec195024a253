// SPDX-License-Identifier: Apache-2.0
/* Documented in operstate.h. */
#include "operstate.h"

#include "loop.h"
#include "netlink_socket.h"

#include <errno.h>
#include <linux/if.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef IF_OPER_UP
#define IF_OPER_UP 6
#endif
#ifndef IF_OPER_UNKNOWN
#define IF_OPER_UNKNOWN 0
#endif

/* The latest IFLA_OPERSTATE of the link among the messages in the socket; without one *state is left alone.
 */
static int read_operstate(struct cell *cell, int fd, int ifindex, int *state)
{
	struct message_error error;
	struct nlmsghdr header;
	size_t next, at;
	const char *reply;
	ssize_t n;
	int operstate;

	while ((n = netlink_receive(cell, fd, &reply)) > 0) {
		for (next = at = 0; message_next(reply, (size_t)n, &next, &header); at = next) {
			operstate = message_operstate(reply + at, &header, ifindex);
			if (operstate >= 0)
				*state = operstate;
			if (header.nlmsg_type != NLMSG_ERROR)
				continue;
			error = message_error(reply + at, &header);
			if (error.error)
				return netlink_refused(cell, &error, 1);
		}
	}
	return n < 0 ? -1 : 0;
}

static bool is_up(const struct step_operstate *step, int state)
{
	return state == IF_OPER_UP || (step->unknown && state == IF_OPER_UNKNOWN);
}

static int wait_until_up(struct cell *cell, const struct step_operstate *step, int fd)
{
	struct {
		struct nlmsghdr header;
		struct ifinfomsg info;
	} query = {
	    .header = {.nlmsg_len = sizeof(query), .nlmsg_type = RTM_GETLINK, .nlmsg_flags = NLM_F_REQUEST},
	    .info = {.ifi_family = AF_UNSPEC, .ifi_index = step->ifindex},
	};
	int state = -1, woken = LOOP_WOKEN;

	if (netlink_send(cell, fd, (const char *)&query, sizeof(query)) || loop_add(cell, fd, NULL))
		return -1;
	if (read_operstate(cell, fd, step->ifindex, &state))
		return -1;
	if (!is_up(step, state) && loop_wake_in(cell, step->timeout_ns))
		return -1;
	while (!is_up(step, state)) {
		if (woken == LOOP_TIMER)
			return cell_fail(cell, "interface %d is not up after %lld ns (operstate %d)",
					 step->ifindex, (long long)step->timeout_ns, state);
		woken = loop_wait(cell);
		if (woken < 0 || read_operstate(cell, fd, step->ifindex, &state))
			return -1;
	}
	return loop_wake_at(cell, 0);
}

int operstate_wait(struct cell *cell, const struct step_operstate *step)
{
	int fd = netlink_open(cell, step->ns, NETLINK_ROUTE), result = -1, group = RTNLGRP_LINK;

	if (fd < 0)
		return -1;
	if (setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group)))
		cell_fail_errno(cell, errno, "RTNLGRP_LINK");
	else
		result = wait_until_up(cell, step, fd);
	loop_remove(fd);
	close(fd);
	return result;
}
