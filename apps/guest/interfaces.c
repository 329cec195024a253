// SPDX-License-Identifier: Apache-2.0
/* Documented in interfaces.h. */
#include "interfaces.h"

#include "launch.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int interfaces_open(void)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (fd < 0)
		die(EXIT_CANNOT, "netlink socket: %s", strerror(errno));
	return fd;
}

void interface_take(int machine, const char *name)
{
	struct {
		struct nlmsghdr header;
		struct ifinfomsg link;
		struct rtattr name;
		char text[IFNAMSIZ];
		struct rtattr to;
		int pid;
	} move = {
	    .header = {.nlmsg_len = sizeof(move),
		       .nlmsg_type = RTM_NEWLINK,
		       .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK},
	    .name = {.rta_len = RTA_LENGTH(sizeof(move.text)), .rta_type = IFLA_IFNAME},
	    .to = {.rta_len = RTA_LENGTH(sizeof(move.pid)), .rta_type = IFLA_NET_NS_PID},
	    .pid = getpid(),
	};
	struct {
		struct nlmsghdr header;
		struct nlmsgerr error;
		char more[1024];
	} reply = {0};
	struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};

	if (strlen(name) >= sizeof(move.text))
		die(EXIT_USAGE, "--interface %s: the name is too long", name);
	memcpy(move.text, name, strlen(name));
	if (sendto(machine, &move, sizeof(move), 0, (struct sockaddr *)&kernel, sizeof(kernel)) < 0 ||
	    recv(machine, &reply, sizeof(reply), 0) < (ssize_t)NLMSG_LENGTH(sizeof(reply.error)))
		die(EXIT_CANNOT, "netlink: %s", strerror(errno));
	if (reply.error.error)
		die(EXIT_CANNOT, "the interface %s cannot be taken along: %s", name,
		    strerror(-reply.error.error));
}
