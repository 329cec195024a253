// SPDX-License-Identifier: Apache-2.0
/* Documented in namespace.h. */
#include "namespace.h"

#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#define NETNS_DIRECTORY "/run/netns"

enum { NS_NOT_HELD = -2 };

static int current = NS_OWN; /* the namespace we are in: its index, NS_OWN or NS_NOT_HELD */
static int own_fd = -1;	     /* of NS_OWN, once another has been made */

int namespace_enter(struct cell *cell, int index)
{
	if (current == index)
		return 0;
	if (setns(index == NS_OWN ? own_fd : NS_FD_BASE + index, CLONE_NEWNET))
		return cell_fail_errno(cell, errno, "setns to namespace %d", index);
	current = index;
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

/* /run/netns/NAME, as `ip netns` makes it, so that its commands work in a running cell. */
static int bind_name(struct cell *cell, const char *name, const char *target)
{
	char path[512];
	int fd;

	snprintf(path, sizeof(path), NETNS_DIRECTORY "/%.300s", name);
	if (files_make_parents(path))
		return cell_fail_errno(cell, errno, "cannot make " NETNS_DIRECTORY);
	fd = open(path, O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	if (fd < 0)
		return cell_fail_errno(cell, errno, "cannot create %s", path);
	close(fd);
	if (mount(target, path, NULL, MS_BIND, NULL))
		return cell_fail_errno(cell, errno, "cannot bind %s", path);
	return 0;
}

/* Above the descriptors that messages name. */
static int hold_own(struct cell *cell)
{
	int fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), error;

	if (fd < 0)
		return cell_fail_errno(cell, errno, "cannot hold the first network namespace");
	own_fd = fcntl(fd, F_DUPFD_CLOEXEC, BPF_FD_BASE + 3 * BPF_MAX);
	error = errno;
	close(fd);
	return own_fd < 0 ? cell_fail_errno(cell, error, "dup") : 0;
}

int namespace_create(struct cell *cell, const struct step_ns *step)
{
	int target = NS_FD_BASE + step->index, fd;
	char path[64];

	if (fcntl(target, F_GETFD) >= 0)
		return cell_fail(cell, "descriptor %d is taken", target);
	if (own_fd < 0 && hold_own(cell))
		return -1;
	if (unshare(CLONE_NEWNET))
		return cell_fail_errno(cell, errno, "cannot make a network namespace");
	current = NS_NOT_HELD;
	fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || dup3(fd, target, O_CLOEXEC) < 0)
		return cell_fail_errno(cell, errno, "cannot hold the network namespace");
	close(fd);
	current = step->index;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", target);
	if (loopback_up(cell) || bind_name(cell, step->name, path))
		return -1;
	return 0;
}
