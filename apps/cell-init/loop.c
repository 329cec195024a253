// SPDX-License-Identifier: Apache-2.0
/*
 * The one event loop. Which timer fired says what time it is, so the loop itself never reads a clock (a read
 * costs 256 virtual ns).
 */
#include "cell.h"
#include "clock.h"
#include "memory.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

int loop_add(struct cell *cell, int fd, enum wake wake)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = wake};

	if (epoll_ctl(cell->epoll_fd, EPOLL_CTL_ADD, fd, &event))
		return cell_fail_errno(cell, errno, "epoll_ctl");
	return 0;
}

void loop_remove(struct cell *cell, int fd)
{
	epoll_ctl(cell->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

static int add_timer(struct cell *cell, int *fd, clockid_t clock, enum wake wake)
{
	*fd = timerfd_create(clock, TFD_CLOEXEC | TFD_NONBLOCK);
	if (*fd < 0)
		return cell_fail_errno(cell, errno, "timerfd_create");
	return loop_add(cell, *fd, wake);
}

int loop_open(struct cell *cell)
{
	sigset_t signals;

	cell->clock_fd = clock_still_open();
	if (cell->clock_fd < 0)
		return cell_fail_errno(cell, errno, "clock");
	cell->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (cell->epoll_fd < 0)
		return cell_fail_errno(cell, errno, "epoll_create1");
	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	cell->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (cell->signal_fd < 0)
		return cell_fail_errno(cell, errno, "signalfd");
	if (loop_add(cell, cell->signal_fd, WAKE_SIGNAL) ||
	    add_timer(cell, &cell->timer_fd, CLOCK_REALTIME, WAKE_TIMER) ||
	    add_timer(cell, &cell->deadline_fd, CLOCK_REALTIME, WAKE_DEADLINE) ||
	    add_timer(cell, &cell->progress_fd, CLOCK_REALTIME, WAKE_PROGRESS))
		return -1;
	return 0;
}

void loop_close(struct cell *cell)
{
	int *const fds[] = {&cell->clock_fd, &cell->epoll_fd,	 &cell->signal_fd,
			    &cell->timer_fd, &cell->deadline_fd, &cell->progress_fd};
	size_t i;

	for (i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		if (*fds[i] >= 0)
			close(*fds[i]);
		*fds[i] = -1;
	}
}

int64_t loop_now(const struct cell *cell)
{
	return clock_still_ns(cell->clock_fd);
}

static int arm(struct cell *cell, int fd, int flags, int64_t first_ns, int64_t every_ns)
{
	struct itimerspec spec = {.it_value = clock_timespec(first_ns),
				  .it_interval = clock_timespec(every_ns)};

	if (timerfd_settime(fd, flags, &spec, NULL))
		return cell_fail_errno(cell, errno, "timerfd_settime");
	return 0;
}

int loop_wake_at(struct cell *cell, int64_t realtime_ns)
{
	return arm(cell, cell->timer_fd, TFD_TIMER_ABSTIME, realtime_ns, 0);
}

int loop_wake_in(struct cell *cell, int64_t ns)
{
	return arm(cell, cell->timer_fd, 0, ns ? ns : 1, 0);
}

int loop_deadline_in(struct cell *cell, int64_t ns)
{
	return arm(cell, cell->deadline_fd, 0, ns, 0);
}

int loop_deadline_at(struct cell *cell, int64_t realtime_ns)
{
	return arm(cell, cell->deadline_fd, TFD_TIMER_ABSTIME, realtime_ns, 0);
}

int loop_progress(struct cell *cell)
{
	int64_t period_ns = cell->tick_ns ? cell->tick_ns : cell->every_ns;

	cell->mark_realtime_ns = cell->t0_realtime_ns + cell->every_ns;
	return arm(cell, cell->progress_fd, TFD_TIMER_ABSTIME, cell->t0_realtime_ns + period_ns, period_ns);
}

/* How often the timer fired since it was last asked. */
static uint64_t timer_count(int fd)
{
	uint64_t count = 0;

	if (read(fd, &count, sizeof(count)) != (ssize_t)sizeof(count))
		return 0; /* rearmed in between */
	return count;
}

static int on_signal(struct cell *cell)
{
	struct signalfd_siginfo info;

	while (read(cell->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		if (info.ssi_signo != SIGCHLD)
			return cell_fail(cell, "stopped by signal %u", info.ssi_signo);
	return process_reap(cell);
}

static int on_deadline(struct cell *cell)
{
	if (!timer_count(cell->deadline_fd) || cell->reason != REASON_NONE)
		return 0;
	cell_fail(cell, cell->running ? "still running at the deadline"
				      : "the set-up was not over at its deadline");
	cell->reason = REASON_TIMED_OUT;
	return -1;
}

/* `count` ticks have come due since the last time: how late is each? */
static void on_ticks(struct cell *cell, uint64_t count, int64_t now)
{
	int64_t late_ns = now - cell->t0_realtime_ns - (cell->ticks + 1) * cell->tick_ns;

	if (late_ns > cell->tick_worst_ns)
		cell->tick_worst_ns = late_ns;
	for (; count; count--, late_ns -= cell->tick_ns) {
		cell->ticks++;
		cell->ticks_late += late_ns > cell->tick_late_ns;
	}
}

static void on_progress(struct cell *cell)
{
	uint64_t count = timer_count(cell->progress_fd);
	int64_t now = loop_now(cell);
	char line[32];
	int len;

	if (!count)
		return;
	if (cell->tick_ns) {
		if (!cell->ticks_over)
			on_ticks(cell, count, now);
		if (now < cell->mark_realtime_ns)
			return;
		cell->mark_realtime_ns +=
		    ((now - cell->mark_realtime_ns) / cell->every_ns + 1) * cell->every_ns;
	}
	len = snprintf(line, sizeof(line), "@%" PRId64 "\n", (now - cell->t0_realtime_ns) / NS_PER_S);
	if (write(STDOUT_FILENO, line, (size_t)len) < 0)
		return; /* a console that is gone must not end the cell */
	memory_mark(cell);
}

int loop_wait(struct cell *cell, unsigned int *wake)
{
	struct epoll_event events[8];
	unsigned int woken = 0;
	int i, n;

	n = epoll_wait(cell->epoll_fd, events, 8, -1);
	if (n < 0 && errno != EINTR)
		return cell_fail_errno(cell, errno, "epoll_wait");
	for (i = 0; i < n; i++)
		woken |= events[i].data.u32;
	if (wake)
		*wake = woken;
	if (woken & WAKE_TIMER) {
		/* What the timeline does at this instant comes first; the rest is still there the next time.
		 */
		timer_count(cell->timer_fd);
		return 0;
	}
	if (woken & WAKE_PROGRESS) {
		on_progress(cell);
		if (cell->stop_file && access(cell->stop_file, F_OK) == 0)
			return cell_fail(cell, "stopped by %s", cell->stop_file);
	}
	if ((woken & WAKE_SIGNAL && on_signal(cell)) || (woken & WAKE_CAPTURE && capture_spoke(cell)) ||
	    (woken & WAKE_DEADLINE && on_deadline(cell)))
		return -1;
	return 0;
}
