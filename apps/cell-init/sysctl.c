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

/* A kernel of few pages keeps few for buffers, and under memory pressure it announces small windows for good:
 * the transport then measures the sandbox. Pages up to which there is no pressure; half as many more are the
 * end. */
int setting_memory(struct cell *cell, const struct step *step)
{
	static const char *const paths[] = {"/proc/sys/net/ipv4/tcp_mem", "/proc/sys/net/sctp/sctp_mem"};
	long long pages = step_int(step, "pages", 0);
	char value[64], text[256];
	ssize_t n;
	size_t i;

	/* the machine's own kernel is not ours to set */
	if (!cell->guest)
		return cell_fail(cell, "memory is set in a guest only");
	snprintf(value, sizeof(value), "%lld\t%lld\t%lld", pages, pages, pages + pages / 2);
	for (i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		n = write_then_read(paths[i], value, text, sizeof(text) - 1);
		if (n < 0 && errno == ENOENT)
			continue; /* a kernel without that transport */
		if (n < 0)
			return cell_fail_errno(cell, errno, "%s = %s", paths[i], value);
		if (strcmp(trimmed(text, (size_t)n), value))
			return cell_fail(cell, "%s is %s, asked for %s", paths[i], text, value);
	}
	return 0;
}
