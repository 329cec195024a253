// SPDX-License-Identifier: Apache-2.0
/*
 * cell-init: runs a cell's steps.txt in a sandbox (docs/formats.md), as pid 1 of a guest kernel or of a pid
 * namespace, and writes init.ndjson. It takes no options.
 *
 * Exit status in namespaces: 0 completed, 1 failed, 2 timed out. A guest powers off.
 */
#include "cell.h"
#include "loop.h"
#include "phases.h"
#include "record.h"
#include "sandbox.h"
#include "steps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define STEPS_FILE "steps.txt"

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

static int load_steps(struct cell *cell, struct steps *steps)
{
	size_t len = 0;
	char *text = read_steps(cell, &len);
	int result;

	if (!text)
		return -1;
	result = steps_parse(steps, text, len);
	free(text);
	return result ? cell_fail(cell, "%s", steps->error.text) : 0;
}

int main(void)
{
	static struct cell cell = {.clock_fd = -1};
	static struct steps steps;
	bool recorded = false;

	if (!sandbox_enter(&cell) && !cell_open_clock(&cell) && !loop_open(&cell) && !record_open(&cell)) {
		recorded = true;
		if (!record_start(&cell) && !load_steps(&cell, &steps) &&
		    !sandbox_check(&cell, &steps.list[0].sandbox))
			phases_run(&cell, &steps);
	}
	if (cell.reason != REASON_COMPLETED)
		fprintf(stderr, "cell-init: %s\n", cell.message);
	if (recorded)
		record_end(&cell);
	loop_close();
	return sandbox_leave(&cell);
}
