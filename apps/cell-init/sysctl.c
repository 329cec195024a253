// SPDX-License-Identifier: Apache-2.0
/* Documented in sysctl.h. */
#include "sysctl.h"

#include "files.h"
#include "namespace.h"
#include "record.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The text without blanks and tabs at both ends. */
static char *trimmed(char *text)
{
	size_t len = strlen(text);

	while (len && strchr(" \t\n", text[len - 1]))
		len--;
	text[len] = '\0';
	return text + strspn(text, " \t");
}

static ssize_t write_then_read(const char *path, const char *value, char *text, size_t size)
{
	return files_write(path, value, 0) < 0 ? -1 : files_read(path, text, size);
}

int sysctl_set(struct cell *cell, const struct step_sysctl *step)
{
	char path[512], text[4096];

	/* /proc/sys/net shows the namespace of the process that opens it */
	if (namespace_enter(cell, step->ns))
		return -1;
	snprintf(path, sizeof(path), "/proc/sys/%.400s", step->path);
	if (write_then_read(path, step->value, text, sizeof(text)) < 0)
		return cell_fail_errno(cell, errno, "sysctl %s = %s", step->path, step->value);
	record_begin_step(cell, "sysctl");
	ndjson_int(&cell->out, "ns", step->ns);
	ndjson_str(&cell->out, "path", step->path);
	ndjson_str(&cell->out, "asked", step->value);
	ndjson_str(&cell->out, "value", trimmed(text));
	return record_end_line(cell);
}

int sysctl_set_memory(struct cell *cell, const struct step_memory *step)
{
	static const char *const paths[] = {"/proc/sys/net/ipv4/tcp_mem", "/proc/sys/net/sctp/sctp_mem"};
	char value[64], text[256];
	ssize_t n;
	size_t i;

	/* never of the machine's own kernel */
	if (!cell->guest)
		return cell_fail(cell, "memory is set in a guest only");
	snprintf(value, sizeof(value), "%d\t%d\t%d", step->pages, step->pages, step->pages + step->pages / 2);
	for (i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		n = write_then_read(paths[i], value, text, sizeof(text));
		if (n < 0 && errno == ENOENT)
			continue; /* a kernel without that transport */
		if (n < 0)
			return cell_fail_errno(cell, errno, "%s = %s", paths[i], value);
		if (strcmp(trimmed(text), value))
			return cell_fail(cell, "%s is %s, asked for %s", paths[i], text, value);
	}
	return 0;
}
