// SPDX-License-Identifier: Apache-2.0
/* Sysctls: set and read back. */
#include "cell.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Blanks and tabs at both ends off. */
static char *trimmed(char *text, size_t len)
{
	while (len && strchr(" \t\n", text[len - 1]))
		len--;
	text[len] = '\0';
	return text + strspn(text, " \t");
}

static ssize_t write_then_read(const char *path, const char *value, char *text, size_t room)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = write(fd, value, strlen(value));
	close(fd);
	if (n < 0)
		return -1;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	n = read(fd, text, room);
	close(fd);
	return n;
}

int setting_sysctl(struct cell *cell, const struct step *step)
{
	const char *name = step_text(step, "path"), *value = step_text(step, "value");
	char path[512], text[4096];
	ssize_t n;

	/* /proc/sys/net shows the namespace of whoever looks it up */
	if (ns_enter(cell, (int)step_int(step, "ns", 0)))
		return -1;
	snprintf(path, sizeof(path), "/proc/sys/%.400s", name);
	n = write_then_read(path, value, text, sizeof(text) - 1);
	if (n < 0)
		return cell_fail_errno(cell, errno, "sysctl %s = %s", name, value);
	ndjson_begin(&cell->out, "sysctl");
	ndjson_int(&cell->out, "step", step->line);
	ndjson_int(&cell->out, "ns", step_int(step, "ns", 0));
	ndjson_str(&cell->out, "path", name);
	ndjson_str(&cell->out, "asked", value);
	ndjson_str(&cell->out, "value", trimmed(text, (size_t)n));
	return record_end_line(cell);
}
