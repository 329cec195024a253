// SPDX-License-Identifier: Apache-2.0
/* Files below /proc as they are: the kernel's counters of a namespace. */
#include "cell.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* net/netstat is about 8 KiB */
#define TEXT_MAX 65536

int proc_read(struct cell *cell, const struct step *step)
{
	static char text[TEXT_MAX];
	const char *name = step_text(step, "path");
	char path[512];
	size_t len = 0;
	ssize_t n = -1;
	int fd;

	/* /proc/net shows the namespace of whoever looks it up */
	if (ns_enter(cell, (int)step_int(step, "ns", 0)))
		return -1;
	snprintf(path, sizeof(path), "/proc/%.400s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		while (len < sizeof(text) && (n = read(fd, text + len, sizeof(text) - len)) > 0)
			len += (size_t)n;
		close(fd);
	}
	/* a kernel without that protocol has no such file, which is an answer too */
	if (n < 0 && errno != ENOENT)
		return cell_fail_errno(cell, errno, "cannot read %s", path);
	ndjson_begin(&cell->out, "proc");
	ndjson_int(&cell->out, "step", step->line);
	ndjson_int(&cell->out, "ns", step_int(step, "ns", 0));
	ndjson_str(&cell->out, "path", name);
	if (n < 0)
		ndjson_null(&cell->out, "text");
	else
		ndjson_strn(&cell->out, "text", text, len);
	return record_end_line(cell);
}
