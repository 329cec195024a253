// SPDX-License-Identifier: Apache-2.0
/* Documented in proc_file.h. */
#include "proc_file.h"

#include "files.h"
#include "namespace.h"
#include "record.h"

#include <errno.h>
#include <stdio.h>

/* net/netstat is about 8 KiB */
#define TEXT_MAX 65536

int proc_file_record(struct cell *cell, const struct step_proc *step)
{
	static char text[TEXT_MAX + 1];
	char path[512];
	ssize_t len;

	/* /proc/net shows the namespace of the process that opens it */
	if (namespace_enter(cell, step->ns))
		return -1;
	snprintf(path, sizeof(path), "/proc/%.400s", step->path);
	len = files_read(path, text, sizeof(text));
	/* a kernel without that protocol has no such file, which is an answer too */
	if (len < 0 && errno != ENOENT)
		return cell_fail_errno(cell, errno, "cannot read %s", path);
	record_begin_step(cell, "proc");
	ndjson_int(&cell->out, "ns", step->ns);
	ndjson_str(&cell->out, "path", step->path);
	if (len < 0)
		ndjson_null(&cell->out, "text");
	else
		ndjson_strn(&cell->out, "text", text, (size_t)len);
	return record_end_line(cell);
}
