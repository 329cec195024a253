// SPDX-License-Identifier: Apache-2.0
/* Documented in trace.h. */
#include "trace.h"

#include "clock.h"
#include "files.h"
#include "record.h"
#include "trace_buffer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#define TRACEFS	      "/sys/kernel/tracing"
#define PAGE_BYTES    4096
#define EVENTS	      2
#define RECORDS_AHEAD 1024 /* records per write: 64 KiB */

static const struct {
	const char *name;
	enum trace_kind kind;
} known[EVENTS] = {{"sctp/sctp_probe_path", TRACE_SCTP_PATH}, {"tcp/tcp_probe", TRACE_TCP}};

/* The file being written. */
struct sink {
	const struct step_trace *step; /* NULL: tracepoints are off */
	unsigned int line;	       /* of that step */
	int fd;
	int error;
	uint64_t events, lost;
	size_t waiting;
	struct trace_record records[RECORDS_AHEAD];
};

static struct trace_event events[EVENTS];
static struct sink sink;

static int put(struct cell *cell, const char *name, const char *text)
{
	char path[200];

	snprintf(path, sizeof(path), TRACEFS "/%s", name);
	if (files_write(path, text, O_TRUNC) < 0)
		return cell_fail_errno(cell, errno, "cannot write '%s' to %s", text, path);
	return 0;
}

static int read_format(struct cell *cell, struct trace_event *event, const char *name)
{
	char path[200], text[8192];
	const char *missing = NULL;

	snprintf(path, sizeof(path), TRACEFS "/events/%s/format", name);
	if (files_read(path, text, sizeof(text)) < 0)
		return cell_fail_errno(cell, errno, "this kernel has no tracepoint %s", name);
	if (trace_read_format(event, text, &missing))
		return cell_fail(cell, "tracepoint %s of this kernel has no field %s", name, missing);
	return 0;
}

int trace_begin(struct cell *cell, const struct step_trace *step)
{
	const char *filter = step->tcp_filter;
	char text[80];
	size_t i;

	if (!cell->guest)
		return cell_fail(cell,
				 "tracepoints need a kernel of their own: use --backend virtual or guest");
	if (mount("tracefs", TRACEFS, "tracefs", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) && errno != EBUSY)
		return cell_fail_errno(cell, errno, "cannot mount tracefs");
	for (i = 0; i < EVENTS; i++) {
		events[i].kind = known[i].kind;
		if (read_format(cell, &events[i], known[i].name))
			return -1;
	}
	snprintf(text, sizeof(text), "%d", step->buffer_bytes / 1024);
	/*
	 * The file is made at the end: making it would cost virtual time now. Events that do not fit are the
	 * last ones, not the first, and are counted.
	 */
	if (put(cell, "trace_clock", "mono") || put(cell, "options/overwrite", "0") ||
	    put(cell, "buffer_size_kb", text))
		return -1;
	if (filter && put(cell, "events/tcp/tcp_probe/filter", filter))
		return -1;
	sink.step = step;
	sink.line = cell->step;
	return put(cell, "events/sctp/sctp_probe_path/enable", "1") ||
		       (filter && put(cell, "events/tcp/tcp_probe/enable", "1"))
		   ? -1
		   : 0;
}

void trace_none(void)
{
	clock_monotonic_ns();
}

static void flush(struct sink *to)
{
	const char *at = (const char *)to->records;
	size_t left = to->waiting * sizeof(to->records[0]);
	ssize_t n;

	while (left && !to->error) {
		n = write(to->fd, at, left);
		if (n < 0) {
			to->error = errno;
			break;
		}
		at += n;
		left -= (size_t)n;
	}
	to->waiting = 0;
	files_drop_pages(to->fd); /* hostfs: only a guest has a trace */
}

static void take(void *context, const struct trace_record *record)
{
	struct sink *to = context;

	to->records[to->waiting++] = *record;
	to->events++;
	if (to->waiting == RECORDS_AHEAD)
		flush(to);
}

/* One processor's ring buffer: UML has one; a page does not show which. */
static int read_buffer(struct cell *cell, int fd)
{
	uint8_t page[PAGE_BYTES];
	int64_t lost;
	ssize_t n;

	while ((n = read(fd, page, sizeof(page))) > 0) {
		lost = trace_read_page(page, (size_t)n, events, EVENTS, take, &sink);
		if (lost < 0)
			return cell_fail(cell, "a page of the kernel's trace is not of the known form");
		sink.lost += (uint64_t)lost;
	}
	if (n < 0 && errno != EAGAIN)
		return cell_fail_errno(cell, errno, "cannot read the kernel's trace");
	return 0;
}

/* The number of events that did not fit: the kernel's own count. */
static uint64_t dropped(void)
{
	char text[1024];
	const char *line;
	unsigned long long count = 0;

	files_read(TRACEFS "/per_cpu/cpu0/stats", text, sizeof(text));
	line = strstr(text, "dropped events: ");
	if (line)
		sscanf(line, "dropped events: %llu", &count);
	return count;
}

/* The kernel's buffer into the open file. */
static int write_events(struct cell *cell)
{
	int result = put(cell, "tracing_on", "0"), fd;

	sink.lost += dropped();
	fd = open(TRACEFS "/per_cpu/cpu0/trace_pipe_raw", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return cell_fail_errno(cell, errno, "cannot open the kernel's trace");
	result |= read_buffer(cell, fd);
	close(fd);
	return result;
}

int trace_finish(struct cell *cell)
{
	const char *file;
	int result;

	if (!sink.step)
		return 0;
	file = sink.step->file;
	if (files_make_parents(file))
		return cell_fail_errno(cell, errno, "cannot make the directory of %s", file);
	sink.fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (sink.fd < 0)
		return cell_fail_errno(cell, errno, "cannot create %s", file);
	result = write_events(cell);
	flush(&sink);
	if (close(sink.fd) && !sink.error)
		sink.error = errno;
	if (sink.error)
		result = cell_fail_errno(cell, sink.error, "cannot write %s", file);
	ndjson_begin(&cell->out, "trace");
	ndjson_int(&cell->out, "step", sink.line);
	ndjson_str(&cell->out, "file", file);
	ndjson_uint(&cell->out, "events", sink.events);
	ndjson_uint(&cell->out, "lost", sink.lost);
	ndjson_int(&cell->out, "errno", sink.error);
	return record_end_line(cell) ? -1 : result;
}
