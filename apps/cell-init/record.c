// SPDX-License-Identifier: Apache-2.0
/* Documented in record.h. */
#include "record.h"

#include "clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#define RECORD_FILE "init.ndjson"
/* Space that is given back when the disk is full, so that the last records can still be written. */
#define RESERVE_FILE  "init.reserve"
#define RESERVE_BYTES 65536
#define VERSION	      1

/*
 * The disk is full: give back what record_open() put aside, so that this line and the last ones are written,
 * and end the cell. Works once; then the error counts.
 */
static bool use_reserve(struct ndjson *out, int error)
{
	struct cell *cell = (struct cell *)((char *)out - offsetof(struct cell, out));

	if ((error != ENOSPC && error != EDQUOT) || unlink(RESERVE_FILE))
		return false;
	cell_fail_errno(cell, error, RECORD_FILE);
	return true;
}

static int make_reserve(struct cell *cell)
{
	static char zeroes[RESERVE_BYTES];
	int fd, result = -1;

	fd = open(RESERVE_FILE, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0)
		return cell_fail_errno(cell, errno, "cannot create " RESERVE_FILE);
	/* zeroes, written: a hole would take no space */
	if (write(fd, zeroes, sizeof(zeroes)) != (ssize_t)sizeof(zeroes))
		cell_fail_errno(cell, errno ? errno : ENOSPC, "cannot write " RESERVE_FILE);
	else
		result = 0;
	close(fd);
	return result;
}

int record_open(struct cell *cell)
{
	int fd = open(RECORD_FILE, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0)
		return cell_fail_errno(cell, errno, "cannot create " RECORD_FILE);
	ndjson_init(&cell->out, fd);
	cell->out.retry = use_reserve;
	return make_reserve(cell);
}

void record_t(struct cell *cell, const char *key, int64_t realtime_ns)
{
	if (cell->t0_known)
		ndjson_int(&cell->out, key, realtime_ns - cell->t0_realtime_ns);
	else
		ndjson_null(&cell->out, key);
}

int record_end_line(struct cell *cell)
{
	enum reason before = cell->reason;

	if (ndjson_end(&cell->out))
		return cell_fail_errno(cell, errno, "cannot write " RECORD_FILE);
	return cell->reason == before ? 0 : -1;
}

void record_begin_step(struct cell *cell, const char *record)
{
	ndjson_begin(&cell->out, record);
	ndjson_int(&cell->out, "step", cell->step);
}

int record_start(struct cell *cell)
{
	struct utsname name;

	uname(&name);
	ndjson_begin(&cell->out, "start");
	ndjson_int(&cell->out, "version", VERSION);
	ndjson_str(&cell->out, "kernel", name.release);
	ndjson_str(&cell->out, "kernel_version", name.version);
	ndjson_str(&cell->out, "machine", name.machine);
	ndjson_int(&cell->out, "realtime_ns", cell_now(cell));
	ndjson_int(&cell->out, "monotonic_ns", clock_monotonic_ns());
	return record_end_line(cell);
}

static void end_line(struct cell *cell)
{
	static const char *const names[] = {
	    [REASON_NONE] = "failed",
	    [REASON_COMPLETED] = "completed",
	    [REASON_TIMED_OUT] = "timed_out",
	    [REASON_FAILED] = "failed",
	    [REASON_UNSUPPORTED] = "unsupported",
	};

	ndjson_begin(&cell->out, "end");
	ndjson_str(&cell->out, "reason", names[cell->reason]);
	if (cell->reason != REASON_COMPLETED && cell->reason_step)
		ndjson_int(&cell->out, "step", cell->reason_step);
	else
		ndjson_null(&cell->out, "step");
	ndjson_str(&cell->out, "message", cell->reason == REASON_COMPLETED ? NULL : cell->message);
	record_t(cell, "t_ns", cell_now(cell));
}

void record_end(struct cell *cell)
{
	end_line(cell);
	if (ndjson_end(&cell->out) == 0) {
		unlink(RESERVE_FILE);
		if (fsync(cell->out.fd))
			fprintf(stderr, "cell-init: fsync of " RECORD_FILE ": %s\n", strerror(errno));
		return;
	}
	/* The file is cut off, and its reader sees that; the console is the last place that can say why. */
	fprintf(stderr, "cell-init: cannot write " RECORD_FILE ": %s\n", strerror(errno));
	fprintf(stderr, "cell-init: the cell ended: %s\n", cell->message);
}
