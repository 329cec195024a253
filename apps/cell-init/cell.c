// SPDX-License-Identifier: Apache-2.0
/* Documented in cell.h. */
#include "cell.h"

#include "clock.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int cell_open_clock(struct cell *cell)
{
	cell->clock_fd = clock_still_open();
	return cell->clock_fd < 0 ? cell_fail_errno(cell, errno, "clock") : 0;
}

int64_t cell_now(const struct cell *cell)
{
	return clock_still_ns(cell->clock_fd);
}

int cell_fail(struct cell *cell, const char *format, ...)
{
	va_list args;

	if (cell->reason != REASON_NONE)
		return -1;
	cell->reason = REASON_FAILED;
	cell->reason_step = cell->step;
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

int cell_time_out(struct cell *cell, const char *message)
{
	if (cell->reason != REASON_NONE)
		return -1;
	cell_fail(cell, "%s", message);
	cell->reason = REASON_TIMED_OUT;
	return -1;
}
