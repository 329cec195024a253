// SPDX-License-Identifier: Apache-2.0
/* Documented in waiter.h. */
#include "waiter.h"

#include "clock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

static volatile sig_atomic_t stopped;
static volatile sig_atomic_t down;	       /* SIGUSR1, SIGHUP or 0 */
static volatile sig_atomic_t blocking_fd = -1; /* of a read that a signal has to end */

static void on_signal(int signal_number)
{
	int error = errno;

	(void)signal_number;
	stopped = 1;
	if (blocking_fd >= 0)
		fcntl((int)blocking_fd, F_SETFL, O_NONBLOCK);
	errno = error;
}

static void on_restart(int signal_number)
{
	down = signal_number == SIGUSR2 ? 0 : signal_number;
}

static int mask_signals(int how)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	return sigprocmask(how, &set, NULL);
}

static int catch_signals(void)
{
	struct sigaction action = {.sa_handler = on_signal};

	if (mask_signals(SIG_BLOCK))
		return -1;
	if (sigaction(SIGTERM, &action, NULL) || sigaction(SIGINT, &action, NULL))
		return -1;
	action.sa_handler = on_restart;
	if (sigaction(SIGHUP, &action, NULL) || sigaction(SIGUSR1, &action, NULL) ||
	    sigaction(SIGUSR2, &action, NULL))
		return -1;
	/* a peer that is gone shows as EPIPE */
	action.sa_handler = SIG_IGN;
	return sigaction(SIGPIPE, &action, NULL);
}

static int watch(struct waiter *waiter, int fd, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.fd = fd};

	return epoll_ctl(waiter->epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

static const struct waiter_host *host;

int waiter_set_host(const struct waiter_host *shared)
{
	host = shared;
	return catch_signals();
}

int waiter_open(struct waiter *waiter)
{
	memset(waiter, 0, sizeof(*waiter));
	waiter->armed_ns = WAIT_NEVER;
	waiter->timer_fd = -1;
	if (host) {
		waiter->hosted = true;
		waiter->epoll_fd = host->epoll_fd;
		return 0;
	}
	waiter->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (waiter->epoll_fd < 0)
		return -1;
	waiter->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (waiter->timer_fd < 0)
		return -1;
	return watch(waiter, waiter->timer_fd, EPOLLIN | EPOLLET) ? -1 : catch_signals();
}

void waiter_close(struct waiter *waiter)
{
	if (waiter->timer_fd >= 0)
		close(waiter->timer_fd);
	if (waiter->epoll_fd >= 0 && !waiter->hosted)
		close(waiter->epoll_fd);
	waiter->timer_fd = waiter->epoll_fd = -1;
}

int waiter_watch(struct waiter *waiter, int fd, bool write)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET | (write ? EPOLLOUT : 0U),
				    .data.fd = fd};

	if (waiter->hosted)
		event.data.ptr = waiter;
	if (epoll_ctl(waiter->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0)
		return 0;
	/* UDP's listening socket is its connection's too */
	return errno == EEXIST ? epoll_ctl(waiter->epoll_fd, EPOLL_CTL_MOD, fd, &event) : -1;
}

static int arm(struct waiter *waiter, int64_t at_ns)
{
	/* an instant of 0 would switch the timer off */
	struct itimerspec when = {.it_value = clock_timespec(at_ns > 0 ? at_ns : 1)};

	waiter->armed_ns = at_ns;
	return timerfd_settime(waiter->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

int waiter_wait(struct waiter *waiter, int64_t until_ns)
{
	struct epoll_event events[2];
	sigset_t none;
	int n, i, result = 0;

	if (waiter->hosted)
		return host->wait(waiter, until_ns);
	waiter->events = 0;
	sigemptyset(&none);
	while (!result) {
		/* a timer that is set too early costs one needless wake-up, less than setting it each time */
		if (until_ns < waiter->armed_ns && arm(waiter, until_ns))
			return -1;
		n = epoll_pwait(waiter->epoll_fd, events, 2, -1, &none);
		if (n < 0 && errno != EINTR)
			return -1;
		for (i = 0; i < n; i++) {
			if (events[i].data.fd != waiter->timer_fd) {
				waiter->events = events[i].events;
				result |= WAIT_SOCKET;
				continue;
			}
			if (until_ns <= waiter->armed_ns || clock_monotonic_ns() >= until_ns)
				result |= WAIT_TIME;
			/* edge triggered: an expiry that is not read wakes no one again, and setting the
			 * timer forgets it */
			waiter->armed_ns = WAIT_NEVER;
		}
		if (stopped)
			result |= WAIT_STOPPED;
		if (down)
			result |= WAIT_DOWN;
	}
	return result;
}

int waiter_down(void)
{
	return (int)down;
}

int waiter_until_up(struct waiter *waiter)
{
	struct epoll_event event;
	sigset_t none;

	sigemptyset(&none);
	while (down && !stopped)
		if (epoll_pwait(waiter->epoll_fd, &event, 1, -1, &none) < 0 && errno != EINTR)
			return -1;
	waiter->armed_ns = WAIT_NEVER; /* its expiry may have been taken here */
	return stopped ? WAIT_STOPPED : 0;
}

void waiter_let_signals_in(int fd)
{
	blocking_fd = fd;
	mask_signals(SIG_UNBLOCK);
}

void waiter_keep_signals_out(void)
{
	int error = errno;

	mask_signals(SIG_BLOCK);
	blocking_fd = -1;
	errno = error;
}

bool waiter_stopped(void)
{
	return stopped;
}
