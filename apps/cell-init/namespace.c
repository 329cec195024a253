// SPDX-License-Identifier: Apache-2.0
/* Network namespaces: held by descriptors NS_FD_BASE + index, so that nothing outlives this process. */
#include "cell.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define NETNS_DIRECTORY "/run/netns"

int make_parents(const char *path)
{
	char part[4096];
	char *slash;

	if (strlen(path) >= sizeof(part)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	strcpy(part, path);
	for (slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(part, 0755) && errno != EEXIST)
			return -1;
		*slash = '/';
	}
	return 0;
}

int ns_enter(struct cell *cell, int index)
{
	if (cell->ns_current == index)
		return 0;
	if (setns(NS_FD_BASE + index, CLONE_NEWNET))
		return cell_fail_errno(cell, errno, "setns to namespace %d", index);
	cell->ns_current = index;
	return 0;
}

static int loopback_up(struct cell *cell)
{
	struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), result = 0;

	if (fd < 0)
		return cell_fail_errno(cell, errno, "socket");
	if (ioctl(fd, SIOCSIFFLAGS, &request))
		result = cell_fail_errno(cell, errno, "cannot set lo up");
	close(fd);
	return result;
}

/* /run/netns/NAME, as `ip netns` makes it: for whoever looks into a running cell. */
static int bind_name(struct cell *cell, const char *name, const char *own)
{
	char path[512];
	int fd;

	snprintf(path, sizeof(path), NETNS_DIRECTORY "/%.300s", name);
	if (make_parents(path))
		return cell_fail_errno(cell, errno, "cannot make " NETNS_DIRECTORY);
	fd = open(path, O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	if (fd < 0)
		return cell_fail_errno(cell, errno, "cannot create %s", path);
	close(fd);
	if (mount(own, path, NULL, MS_BIND, NULL))
		return cell_fail_errno(cell, errno, "cannot bind %s", path);
	return 0;
}

int ns_create(struct cell *cell, const struct step *step)
{
	int index = (int)step_int(step, "index", 0), target = NS_FD_BASE + index, fd;
	char own[64];

	if (fcntl(target, F_GETFD) >= 0)
		return cell_fail(cell, "descriptor %d is taken", target);
	if (unshare(CLONE_NEWNET))
		return cell_fail_errno(cell, errno, "cannot make a network namespace");
	cell->ns_current = -2; /* the new one, not yet held */
	fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || dup3(fd, target, O_CLOEXEC) < 0)
		return cell_fail_errno(cell, errno, "cannot hold the network namespace");
	close(fd);
	cell->ns_current = index;
	snprintf(own, sizeof(own), "/proc/self/fd/%d", target);
	if (loopback_up(cell) || bind_name(cell, step_text(step, "name"), own))
		return -1;
	return 0;
}
