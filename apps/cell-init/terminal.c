// SPDX-License-Identifier: Apache-2.0
/* Documented in terminal.h. */
#include "terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

/* the host's /dev need not have the node, and the guest's own is mounted nowhere else */
#define DEVICES "/run/devices"
#define DEVICE	DEVICES "/tty1"

int terminal_prepare(struct cell *cell)
{
	if (!cell->guest)
		return cell_fail(cell, "there is a terminal in a guest only");
	if (mkdir(DEVICES, 0755) || mount("devtmpfs", DEVICES, "devtmpfs", MS_NOSUID, NULL))
		return cell_fail_errno(cell, errno, "cannot mount the devices on " DEVICES);
	return 0;
}

int terminal_become(void)
{
	int fd;

	if (setsid() < 0)
		return -1;
	fd = open(DEVICE, O_RDWR | O_NOCTTY);
	if (fd < 0 || ioctl(fd, TIOCSCTTY, 0))
		return -1;
	if (dup2(fd, STDIN_FILENO) < 0 || dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0)
		return -1;
	return fd > STDERR_FILENO ? close(fd) : 0;
}
