// SPDX-License-Identifier: Apache-2.0
/* Waits for files: by inotify, so that a wait ends at the write itself and costs no time. */
#include "cell.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

/* What is waited for. */
struct watch {
	const char *path;
	const char *text; /* to be found in the file; NULL: the file is enough */
	const struct process *process;
	int fd;
	off_t done; /* no match begins before this offset */
};

/* Is it there? 1 yes, 0 not yet, -1 failed. */
static int look(struct cell *cell, struct watch *watch)
{
	size_t want, len;
	char buf[65536];
	const char *hit;
	ssize_t n;

	if (!watch->text)
		return access(watch->path, F_OK) == 0;
	want = strlen(watch->text);
	for (;;) {
		n = pread(watch->fd, buf, sizeof(buf), watch->done);
		if (n < 0)
			return cell_fail_errno(cell, errno, "cannot read %s", watch->path);
		len = (size_t)n;
		hit = memmem(buf, len, watch->text, want);
		if (hit)
			return 1;
		if (len < want)
			return 0;
		/* the text may begin in the last bytes and end in what is still to come */
		watch->done += (off_t)(len - want + 1);
		if (len < sizeof(buf))
			return 0;
	}
}

/* Events say only that it is worth a look; drop them all. */
static void drain(int fd)
{
	char buf[4096] __attribute__((aligned(__alignof__(struct inotify_event))));

	while (read(fd, buf, sizeof(buf)) > 0)
		;
}

static int wait_for(struct cell *cell, struct watch *watch, int notify_fd, int64_t timeout_ns)
{
	unsigned int wake = 0;
	bool exited;
	int found;

	if (loop_wake_in(cell, timeout_ns))
		return -1;
	for (;;) {
		/* asked first: a process that has ended writes no more, so the look behind it is the last */
		exited = watch->process && watch->process->exited;
		drain(notify_fd);
		found = look(cell, watch);
		if (found < 0)
			return -1;
		if (found)
			return loop_wake_at(cell, 0);
		if (exited)
			return cell_fail(cell, "%s ended before it wrote '%s'", watch->process->id,
					 watch->text);
		if (wake & WAKE_TIMER)
			return cell_fail(cell, "%s: not %s within %lld ns", watch->path,
					 watch->text ? "written" : "there", (long long)timeout_ns);
		if (loop_wait(cell, &wake))
			return -1;
	}
}

/* `directory`: what inotify watches; events as given. */
static int run(struct cell *cell, struct watch *watch, const char *watched, uint32_t events,
	       int64_t timeout_ns)
{
	int notify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK), result = -1;

	if (notify_fd < 0)
		return cell_fail_errno(cell, errno, "inotify_init1");
	if (inotify_add_watch(notify_fd, watched, events) < 0)
		cell_fail_errno(cell, errno, "cannot watch %s", watched);
	else if (!loop_add(cell, notify_fd, WAKE_WATCH))
		result = wait_for(cell, watch, notify_fd, timeout_ns);
	close(notify_fd);
	return result;
}

int watch_output(struct cell *cell, const struct step *step)
{
	const struct process *process = process_find(cell, step_text(step, "id"));
	struct watch watch = {.text = step_text(step, "text"), .process = process};
	int result;

	if (!process)
		return cell_fail(cell, "%s does not run", step_text(step, "id"));
	watch.path = process->stdout_file;
	watch.fd = open(watch.path, O_RDONLY | O_CLOEXEC);
	if (watch.fd < 0)
		return cell_fail_errno(cell, errno, "cannot open %s", watch.path);
	result = run(cell, &watch, watch.path, IN_MODIFY, step_int(step, "timeout_ns", 0));
	close(watch.fd);
	return result;
}

int watch_file(struct cell *cell, const struct step *step)
{
	struct watch watch = {.path = step_text(step, "path"), .fd = -1};
	char directory[4096];
	char *slash;

	if (make_parents(watch.path))
		return cell_fail_errno(cell, errno, "cannot make the directory of %s", watch.path);
	snprintf(directory, sizeof(directory), "%s", watch.path);
	slash = strrchr(directory, '/');
	if (slash)
		*slash = '\0';
	return run(cell, &watch, slash ? directory : ".", IN_CREATE | IN_MOVED_TO,
		   step_int(step, "timeout_ns", 0));
}
