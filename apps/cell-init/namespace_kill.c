// SPDX-License-Identifier: Apache-2.0
/* Documented in namespace_kill.h. */
#include "namespace_kill.h"

#include "process.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A directory's entries that are numbers: pids, or descriptors; -1 at its end. */
static int next_number(DIR *directory)
{
	const struct dirent *entry;
	char *end;
	long number;

	while ((entry = readdir(directory))) {
		number = strtol(entry->d_name, &end, 10);
		if (end != entry->d_name && !*end)
			return (int)number;
	}
	return -1;
}

/* Whether the process is in the network namespace that `ns` is a file of. One that has ended is in none. */
static bool is_in(int pid, const struct stat *ns)
{
	struct stat other;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/net", pid);
	return !stat(path, &other) && other.st_dev == ns->st_dev && other.st_ino == ns->st_ino;
}

static void linger_for_no_time(int pid)
{
	const struct linger none = {.l_onoff = 1};
	int fd, copy, pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	char path[64];
	DIR *list;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	list = opendir(path);
	while (list && pidfd >= 0 && (fd = next_number(list)) >= 0) {
		copy = (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);
		if (copy < 0)
			continue;
		/* what is no socket refuses it */
		(void)setsockopt(copy, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
		close(copy);
	}
	if (list)
		closedir(list);
	if (pidfd >= 0)
		close(pidfd);
}

/* One pass over all processes; `found`: how many. */
static int pass(const struct stat *ns, int signal, bool abort, int *found)
{
	DIR *list = opendir("/proc");
	int pid;

	if (!list)
		return -1;
	*found = 0;
	while ((pid = next_number(list)) >= 0) {
		if (pid == getpid() || process_is_adopted(pid) || !is_in(pid, ns))
			continue;
		++*found;
		if (abort)
			linger_for_no_time(pid);
		kill(pid, signal);
	}
	closedir(list);
	return 0;
}

int namespace_kill(struct cell *cell, const struct step_kill *step)
{
	struct stat ns;
	int before = 0, found;

	if (fstat(NS_FD_BASE + step->ns, &ns))
		return cell_fail_errno(cell, errno, "fstat of namespace %d", step->ns);
	/* all are stopped first, so that nobody starts another process meanwhile */
	for (found = -1; found != before;) {
		before = found;
		if (pass(&ns, SIGSTOP, false, &found))
			return cell_fail_errno(cell, errno, "opendir of /proc");
	}
	if (pass(&ns, SIGKILL, step->abort, &found))
		return cell_fail_errno(cell, errno, "opendir of /proc");
	return 0;
}
