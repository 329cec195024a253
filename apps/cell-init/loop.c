// SPDX-License-Identifier: Apache-2.0
/* Documented in loop.h. */
#include "loop.h"

#include "clock.h"

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define DESCRIPTORS_MAX 4 /* besides the loop's own: the capture process, and one that a step waits for */

struct descriptor {
	int fd; /* 0: free */
	int (*ready)(struct cell *cell);
};

static struct {
	int epoll_fd, signal_fd, timer_fd, deadline_fd, periodic_fd;
	int (*on_child)(struct cell *cell);
	int (*on_periodic)(struct cell *cell, uint64_t times);
	struct descriptor descriptors[DESCRIPTORS_MAX];
} loop = {.epoll_fd = -1, .signal_fd = -1, .timer_fd = -1, .deadline_fd = -1, .periodic_fd = -1};

static int epoll_add(struct cell *cell, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

	if (epoll_ctl(loop.epoll_fd, EPOLL_CTL_ADD, fd, &event))
		return cell_fail_errno(cell, errno, "epoll_ctl");
	return 0;
}

int loop_add(struct cell *cell, int fd, int (*ready)(struct cell *cell))
{
	size_t i;

	for (i = 0; i < DESCRIPTORS_MAX && loop.descriptors[i].fd; i++)
		;
	if (i == DESCRIPTORS_MAX)
		return cell_fail(cell, "the event loop has no room for another descriptor");
	loop.descriptors[i] = (struct descriptor){.fd = fd, .ready = ready};
	return epoll_add(cell, fd);
}

void loop_remove(int fd)
{
	size_t i;

	epoll_ctl(loop.epoll_fd, EPOLL_CTL_DEL, fd, NULL);
	for (i = 0; i < DESCRIPTORS_MAX; i++)
		if (loop.descriptors[i].fd == fd)
			loop.descriptors[i].fd = 0;
}

void loop_on_child(int (*handler)(struct cell *cell))
{
	loop.on_child = handler;
}

static int add_timer(struct cell *cell, int *fd)
{
	*fd = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	if (*fd < 0)
		return cell_fail_errno(cell, errno, "timerfd_create");
	return epoll_add(cell, *fd);
}

int loop_open(struct cell *cell)
{
	sigset_t signals;

	loop.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (loop.epoll_fd < 0)
		return cell_fail_errno(cell, errno, "epoll_create1");
	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	loop.signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (loop.signal_fd < 0)
		return cell_fail_errno(cell, errno, "signalfd");
	if (epoll_add(cell, loop.signal_fd) || add_timer(cell, &loop.timer_fd) ||
	    add_timer(cell, &loop.deadline_fd) || add_timer(cell, &loop.periodic_fd))
		return -1;
	return 0;
}

void loop_close(void)
{
	int *const fds[] = {&loop.epoll_fd, &loop.signal_fd, &loop.timer_fd, &loop.deadline_fd,
			    &loop.periodic_fd};
	size_t i;

	for (i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		if (*fds[i] >= 0)
			close(*fds[i]);
		*fds[i] = -1;
	}
}

static int arm(struct cell *cell, int fd, int flags, int64_t first_ns, int64_t period_ns)
{
	struct itimerspec spec = {.it_value = clock_timespec(first_ns),
				  .it_interval = clock_timespec(period_ns)};

	if (timerfd_settime(fd, flags, &spec, NULL))
		return cell_fail_errno(cell, errno, "timerfd_settime");
	return 0;
}

int loop_wake_at(struct cell *cell, int64_t realtime_ns)
{
	return arm(cell, loop.timer_fd, TFD_TIMER_ABSTIME, realtime_ns, 0);
}

int loop_wake_in(struct cell *cell, int64_t ns)
{
	return arm(cell, loop.timer_fd, 0, ns ? ns : 1, 0);
}

int loop_deadline_at(struct cell *cell, int64_t realtime_ns)
{
	return arm(cell, loop.deadline_fd, TFD_TIMER_ABSTIME, realtime_ns, 0);
}

int loop_deadline_in(struct cell *cell, int64_t ns)
{
	return arm(cell, loop.deadline_fd, 0, ns, 0);
}

int loop_every(struct cell *cell, int64_t first_ns, int64_t period_ns,
	       int (*handler)(struct cell *cell, uint64_t times))
{
	loop.on_periodic = handler;
	return arm(cell, loop.periodic_fd, TFD_TIMER_ABSTIME, first_ns, period_ns);
}

/* The number of times that the timer has fired since the last call. */
static uint64_t timer_count(int fd)
{
	uint64_t count = 0;

	if (read(fd, &count, sizeof(count)) != (ssize_t)sizeof(count))
		return 0; /* rearmed in between */
	return count;
}

static int take_signals(struct cell *cell)
{
	struct signalfd_siginfo info;

	while (read(loop.signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		if (info.ssi_signo != SIGCHLD)
			return cell_fail(cell, "stopped by signal %u", info.ssi_signo);
	return loop.on_child ? loop.on_child(cell) : 0;
}

static int take_deadline(struct cell *cell)
{
	if (!timer_count(loop.deadline_fd) || cell->reason != REASON_NONE)
		return 0;
	return cell_time_out(cell, cell->running ? "still running at the deadline"
						 : "the set-up was not over at its deadline");
}

static bool is_ready(const struct epoll_event *events, int count, int fd)
{
	int i;

	for (i = 0; i < count; i++)
		if (events[i].data.fd == fd)
			return true;
	return false;
}

static int call_ready(struct cell *cell, const struct epoll_event *events, int n)
{
	const struct descriptor *descriptor;
	size_t i;

	if (is_ready(events, n, loop.periodic_fd) && loop.on_periodic(cell, timer_count(loop.periodic_fd)))
		return -1;
	if (is_ready(events, n, loop.signal_fd) && take_signals(cell))
		return -1;
	for (i = 0; i < DESCRIPTORS_MAX; i++) {
		descriptor = &loop.descriptors[i];
		if (descriptor->fd && descriptor->ready && is_ready(events, n, descriptor->fd) &&
		    descriptor->ready(cell))
			return -1;
	}
	return is_ready(events, n, loop.deadline_fd) ? take_deadline(cell) : 0;
}

int loop_wait(struct cell *cell)
{
	struct epoll_event events[8];
	int n = epoll_wait(loop.epoll_fd, events, 8, -1);

	if (n < 0 && errno != EINTR)
		return cell_fail_errno(cell, errno, "epoll_wait");
	if (is_ready(events, n, loop.timer_fd)) {
		timer_count(loop.timer_fd);
		return LOOP_TIMER;
	}
	return call_ready(cell, events, n) ? -1 : LOOP_WOKEN;
}
