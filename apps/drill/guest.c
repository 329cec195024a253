// SPDX-License-Identifier: Apache-2.0
/* Documented in guest.h. */
#include "guest.h"

#include "clock.h"
#include "kernel_log.h"
#include "report.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
	int64_t until_ns;
	const int *event;
	pthread_t thread;
} watch;

static int mount_on(const char *source, const char *target, const char *type, const char *data)
{
	if (mount(source, target, type, MS_NOSUID | MS_NODEV, data)) {
		fprintf(stderr, "drill: cannot mount %s on %s: %s\n", type, target, strerror(errno));
		return -1;
	}
	return 0;
}

int guest_enter(void)
{
	if (mount_on("proc", "/proc", "proc", NULL) || mount_on("sysfs", "/sys", "sysfs", NULL) ||
	    mount_on("tmpfs", "/run", "tmpfs", "mode=0755") ||
	    mount_on("tmpfs", "/tmp", "tmpfs", "mode=1777"))
		return -1;
	kernel_log_open();
	/* hostfs resolves the path in the kernel's own process, whose working directory this is */
	if (mkdir(DIRECTORY, 0755) || mount_on("none", DIRECTORY, "hostfs", "/proc/self/cwd"))
		return -1;
	if (chdir(DIRECTORY)) {
		perror("drill: " DIRECTORY);
		return -1;
	}
	/* as the kernel's runner does (unshare -n) */
	if (unshare(CLONE_NEWNET)) {
		perror("drill: unshare");
		return -1;
	}
	return 0;
}

static void be_the_shell(const char *command)
{
	char *const environment[] = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
				     "HOME=/tmp", "LC_ALL=C", "PACKETDRILL_PID=1", NULL};
	char *const arguments[] = {"sh", "-c", (char *)(uintptr_t)command, NULL};
	int fd = open(DIRECTORY "/shell.txt", O_WRONLY | O_CREAT | O_APPEND, 0644);

	if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0 || chdir(DIRECTORY "/files"))
		_exit(126);
	execve("/bin/sh", arguments, environment);
	_exit(127);
}

int guest_shell(const char *command)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		be_the_shell(command);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void *watching(void *unused)
{
	(void)unused;
	while (clock_sleep_until(watch.until_ns) == EINTR)
		;
	report_begin("stopped", *watch.event);
	report_end();
	guest_leave();
}

int guest_watch(int64_t until_ns, const int *event)
{
	watch.until_ns = until_ns;
	watch.event = event;
	return pthread_create(&watch.thread, NULL, watching, NULL) ? -1 : 0;
}

void guest_end(void)
{
	/* nothing is played any more: kmemleak takes its own seconds */
	if (watch.event)
		pthread_cancel(watch.thread);
	kernel_log_leaks();
	guest_leave();
}

void guest_leave(void)
{
	/* hostfs writes through: there is nothing to sync */
	reboot(RB_POWER_OFF);
	perror("drill: reboot");
	_exit(1);
}
