// SPDX-License-Identifier: Apache-2.0
/* Documented in wait_file.h. */
#include "wait_file.h"

#include "files.h"
#include "loop.h"
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

struct wait {
	const char *path;
	const char *text; /* waited for in the file; NULL: for the file alone */
	const struct process *process;
	int fd;
	off_t done; /* no match begins before this offset */
};

/* Whether the file, or the text in it, is there: 1 yes, 0 not yet, -1 failed. */
static int is_there(struct cell *cell, struct wait *wait)
{
	size_t want, len;
	char buf[65536];
	const char *hit;
	ssize_t n;

	if (!wait->text)
		return access(wait->path, F_OK) == 0;
	want = strlen(wait->text);
	for (;;) {
		n = pread(wait->fd, buf, sizeof(buf), wait->done);
		if (n < 0)
			return cell_fail_errno(cell, errno, "cannot read %s", wait->path);
		len = (size_t)n;
		hit = memmem(buf, len, wait->text, want);
		if (hit)
			return 1;
		if (len < want)
			return 0;
		/* the text may begin in the last bytes and end in what is still to come */
		wait->done += (off_t)(len - want + 1);
		if (len < sizeof(buf))
			return 0;
	}
}

/* Drop all events: they say only that the file has changed. */
static void drain(int fd)
{
	char buf[4096] __attribute__((aligned(__alignof__(struct inotify_event))));

	while (read(fd, buf, sizeof(buf)) > 0)
		;
}

static int wait_for(struct cell *cell, struct wait *wait, int notify_fd, int64_t timeout_ns)
{
	int woken = LOOP_WOKEN, there;
	bool exited;

	if (loop_wake_in(cell, timeout_ns))
		return -1;
	for (;;) {
		/* read before the file is: a process that has ended writes no more */
		exited = wait->process && wait->process->exited;
		drain(notify_fd);
		there = is_there(cell, wait);
		if (there < 0)
			return -1;
		if (there)
			return loop_wake_at(cell, 0);
		if (exited)
			return cell_fail(cell, "%s ended before it wrote '%s'", wait->process->id,
					 wait->text);
		if (woken == LOOP_TIMER)
			return cell_fail(cell, "%s: not %s within %lld ns", wait->path,
					 wait->text ? "written" : "there", (long long)timeout_ns);
		woken = loop_wait(cell);
		if (woken < 0)
			return -1;
	}
}

/* `watched`: the file or directory whose `events` inotify reports. */
static int run(struct cell *cell, struct wait *wait, const char *watched, uint32_t events, int64_t timeout_ns)
{
	int notify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK), result = -1;

	if (notify_fd < 0)
		return cell_fail_errno(cell, errno, "inotify_init1");
	if (inotify_add_watch(notify_fd, watched, events) < 0)
		cell_fail_errno(cell, errno, "cannot watch %s", watched);
	else if (!loop_add(cell, notify_fd, NULL))
		result = wait_for(cell, wait, notify_fd, timeout_ns);
	loop_remove(notify_fd);
	close(notify_fd);
	return result;
}

int wait_file_output(struct cell *cell, const struct step_output *step)
{
	const struct process *process = process_find(step->id);
	struct wait wait = {.text = step->text, .process = process};
	int result;

	if (!process)
		return cell_fail(cell, "%s does not run", step->id);
	wait.path = process->stdout_file;
	wait.fd = open(wait.path, O_RDONLY | O_CLOEXEC);
	if (wait.fd < 0)
		return cell_fail_errno(cell, errno, "cannot open %s", wait.path);
	result = run(cell, &wait, wait.path, IN_MODIFY, step->timeout_ns);
	close(wait.fd);
	return result;
}

int wait_file_made(struct cell *cell, const struct step_file *step)
{
	struct wait wait = {.path = step->path, .fd = -1};
	char directory[4096];
	char *slash;

	if (files_make_parents(wait.path))
		return cell_fail_errno(cell, errno, "cannot make the directory of %s", wait.path);
	snprintf(directory, sizeof(directory), "%s", wait.path);
	slash = strrchr(directory, '/');
	if (slash)
		*slash = '\0';
	return run(cell, &wait, slash ? directory : ".", IN_CREATE | IN_MOVED_TO, step->timeout_ns);
}
