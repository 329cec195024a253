// SPDX-License-Identifier: Apache-2.0
/* Documented in sandbox.h. */
#include "sandbox.h"

#include "clock.h"
#include "counters.h"
#include "kernel_log.h"

#include <errno.h>
#include <linux/magic.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* The longest time in which a kernel that counts its lines closes connections that programs left: SCTP's T5
 * takes 300 s. */
#define CLOSING_NS (600 * NS_PER_S)

#define CELL_DIRECTORY "/run/cell"

#ifndef HOSTFS_SUPER_MAGIC
#define HOSTFS_SUPER_MAGIC 0x00c0ffee
#endif

static int mount_on(struct cell *cell, const char *source, const char *target, const char *type,
		    const void *data)
{
	if (mount(source, target, type, MS_NOSUID | MS_NODEV, data))
		return cell_fail_errno(cell, errno, "cannot mount %s on %s", type, target);
	return 0;
}

static int enter_guest(struct cell *cell)
{
	/* hostfs resolves the path on the host, in the kernel's own process: its working directory */
	if (mount_on(cell, "proc", "/proc", "proc", NULL) || mount_on(cell, "sysfs", "/sys", "sysfs", NULL) ||
	    mount_on(cell, "tmpfs", "/run", "tmpfs", "mode=0755"))
		return -1;
	kernel_log_open();
	/* POSIX semaphores and shared memory of programs: the guest's /dev is its own and holds no shm */
	if (mkdir("/dev/shm", 0755) && errno != EEXIST)
		return cell_fail_errno(cell, errno, "cannot make /dev/shm");
	if (mount_on(cell, "tmpfs", "/dev/shm", "tmpfs", "mode=1777"))
		return -1;
	if (mkdir(CELL_DIRECTORY, 0755) || mount_on(cell, "none", CELL_DIRECTORY, "hostfs", "/proc/self/cwd"))
		return cell_fail_errno(cell, errno, "cannot make " CELL_DIRECTORY);
	if (chdir(CELL_DIRECTORY))
		return cell_fail_errno(cell, errno, "cannot go to " CELL_DIRECTORY);
	return 0;
}

static int enter_namespaces(struct cell *cell)
{
	/* what is mounted here is not seen outside */
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return cell_fail_errno(cell, errno, "cannot make the mounts private");
	if (mount_on(cell, "proc", "/proc", "proc", NULL) || mount_on(cell, "sysfs", "/sys", "sysfs", NULL) ||
	    mount_on(cell, "tmpfs", "/run", "tmpfs", "mode=0755"))
		return -1;
	return 0;
}

/* Descriptors 200 and up are namespaces; children get the usual limit back. */
static int raise_file_limit(struct cell *cell)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files))
		return cell_fail_errno(cell, errno, "getrlimit");
	files.rlim_cur = files.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &files))
		return cell_fail_errno(cell, errno, "setrlimit");
	return 0;
}

int sandbox_enter(struct cell *cell)
{
	struct sched_param priority = {.sched_priority = 2};
	struct statfs proc;

	/* As pid 1 nothing outlives us, and `kill -1` at the end reaches no other process of the machine. */
	if (getpid() != 1)
		return cell_fail(cell, "cell-init must be pid 1 of a guest or of a pid namespace");
	/* A guest starts with its root alone, the host's files (hostfs). Namespaces start with the mounts of
	 * the process that made them, which may run in a guest itself. */
	if (statfs("/proc", &proc))
		return cell_fail_errno(cell, errno, "statfs of /proc");
	cell->guest = proc.f_type == HOSTFS_SUPER_MAGIC;
	if (clock_timerslack())
		return cell_fail_errno(cell, errno, "PR_SET_TIMERSLACK");
	/* At equal times the timeline runs before the apps. A user namespace refuses this: time is not exact
	 * there. */
	sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &priority);
	if (raise_file_limit(cell))
		return -1;
	return cell->guest ? enter_guest(cell) : enter_namespaces(cell);
}

int sandbox_check(struct cell *cell, const struct step_sandbox *step)
{
	const char *kind = cell->guest ? "guest" : "namespaces";

	if (strcmp(step->kind, kind))
		return cell_fail(cell, "steps.txt asks for kind=%s, but this is kind=%s", step->kind, kind);
	return 0;
}

int sandbox_leave(struct cell *cell)
{
	if (getpid() == 1)
		kill(-1, SIGKILL);
	fflush(NULL);
	if (getpid() == 1 && cell->guest) {
		/* after all that is recorded: even to look for a file of sysfs reads the clock */
		counters_keep(CLOSING_NS);
		kernel_log_leaks();
		/* hostfs writes through: there is nothing to sync */
		reboot(RB_POWER_OFF);
		perror("cell-init: reboot");
	}
	return cell->reason == REASON_COMPLETED ? 0 : cell->reason == REASON_TIMED_OUT ? 2 : 1;
}
