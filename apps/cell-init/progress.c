// SPDX-License-Identifier: Apache-2.0
/* Documented in progress.h. */
#include "progress.h"

#include "clock.h"
#include "loop.h"
#include "record.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

static const struct step_progress *settings;
static void (*mark_handler)(void);
static int64_t next_mark_ns; /* CLOCK_REALTIME */
static bool ticks_over;
static int64_t ticks, ticks_late, tick_worst_ns;

/* `count` ticks have become due since the last call. late_ns begins with the first of them, the most overdue.
 */
static void count_ticks(const struct cell *cell, uint64_t count, int64_t now)
{
	int64_t late_ns = now - cell->t0_realtime_ns - (ticks + 1) * settings->tick_ns;

	if (late_ns > tick_worst_ns)
		tick_worst_ns = late_ns;
	for (; count; count--, late_ns -= settings->tick_ns) {
		ticks++;
		ticks_late += late_ns > settings->late_ns;
	}
}

static void on_time(const struct cell *cell, uint64_t count, int64_t now)
{
	char line[32];
	int len;

	if (settings->tick_ns) {
		if (!ticks_over)
			count_ticks(cell, count, now);
		if (now < next_mark_ns)
			return;
		next_mark_ns += ((now - next_mark_ns) / settings->every_ns + 1) * settings->every_ns;
	}
	/* sandbox/sandbox.py (last_mark) reads this line */
	len = snprintf(line, sizeof(line), "@%" PRId64 "\n", (now - cell->t0_realtime_ns) / NS_PER_S);
	if (write(STDOUT_FILENO, line, (size_t)len) < 0)
		return; /* a console that is gone must not end the cell */
	mark_handler();
}

static int on_timer(struct cell *cell, uint64_t count)
{
	if (count)
		on_time(cell, count, cell_now(cell));
	if (settings->stop && access(settings->stop, F_OK) == 0)
		return cell_fail(cell, "stopped by %s", settings->stop);
	return 0;
}

int progress_begin(struct cell *cell, const struct step_progress *step, void (*on_mark)(void))
{
	int64_t period_ns = step->tick_ns ? step->tick_ns : step->every_ns;

	settings = step;
	mark_handler = on_mark;
	next_mark_ns = cell->t0_realtime_ns + step->every_ns;
	return loop_every(cell, cell->t0_realtime_ns + period_ns, period_ns, on_timer);
}

bool progress_has_ticks(void)
{
	return settings && settings->tick_ns;
}

void progress_end_ticks(void)
{
	ticks_over = true;
}

void progress_record_ticks(struct cell *cell)
{
	if (!ticks)
		return;
	ndjson_begin(&cell->out, "ticks");
	ndjson_int(&cell->out, "every_ns", settings->tick_ns);
	ndjson_int(&cell->out, "late_ns", settings->late_ns);
	ndjson_int(&cell->out, "ticks", ticks);
	ndjson_int(&cell->out, "late", ticks_late);
	ndjson_int(&cell->out, "worst_ns", tick_worst_ns);
	record_end_line(cell);
}
