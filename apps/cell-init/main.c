// SPDX-License-Identifier: Apache-2.0
/*
 * cell-init: plays a cell's steps.txt in a sandbox (docs/formats.md), as pid 1 of a guest kernel or of a pid
 * namespace, and writes init.ndjson. No options: everything it does stands in that file.
 *
 * Exit status, where it has one (namespaces): 0 completed, 1 failed, 2 timed out.
 */
#include "cell.h"
#include "sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STEPS_FILE "steps.txt"

int cell_fail(struct cell *cell, const char *format, ...)
{
	va_list args;

	if (cell->reason != REASON_NONE)
		return -1;
	cell->reason = REASON_FAILED;
	cell->reason_step = cell->step ? cell->step->line : 0;
	va_start(args, format);
	vsnprintf(cell->message, sizeof(cell->message), format, args);
	va_end(args);
	return -1;
}

int cell_fail_errno(struct cell *cell, int error, const char *format, ...)
{
	char text[sizeof(cell->message)];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return cell_fail(cell, "%.400s: %s (errno %d)", text, strerror(error), error);
}

/* The whole file, or NULL with the reason set. */
static char *read_steps(struct cell *cell, size_t *len)
{
	struct stat stat;
	char *text = NULL;
	size_t done = 0;
	ssize_t n = -1;
	int fd;

	fd = open(STEPS_FILE, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &stat)) {
		cell_fail_errno(cell, errno, "cannot open " STEPS_FILE);
		goto out;
	}
	*len = (size_t)stat.st_size;
	text = malloc(*len + 1);
	while (text && done < *len && (n = read(fd, text + done, *len - done)) > 0)
		done += (size_t)n;
	if (!text || done < *len) {
		cell_fail(cell, "cannot read " STEPS_FILE);
		free(text);
		text = NULL;
	}
out:
	if (fd >= 0)
		close(fd);
	return text;
}

static int load_steps(struct cell *cell)
{
	size_t len = 0;
	char *text = read_steps(cell, &len);
	int result;

	if (!text)
		return -1;
	result = steps_parse(&cell->steps, text, len);
	free(text);
	return result ? cell_fail(cell, "%s", cell->steps.error) : 0;
}

int main(void)
{
	static struct cell cell = {
	    .epoll_fd = -1,
	    .signal_fd = -1,
	    .timer_fd = -1,
	    .deadline_fd = -1,
	    .progress_fd = -1,
	    .ns_current = -1,
	};
	bool recorded = false;

	if (!sandbox_enter(&cell) && !loop_open(&cell) && !record_open(&cell)) {
		recorded = true;
		if (!record_start(&cell) && !load_steps(&cell) && !sandbox_check(&cell))
			play(&cell);
	}
	if (cell.reason != REASON_COMPLETED)
		fprintf(stderr, "cell-init: %s\n", cell.message);
	if (recorded)
		record_end(&cell);
	loop_close(&cell);
	return sandbox_leave(&cell);
}
