/* SPDX-License-Identifier: Apache-2.0 */
/*
 * waiter: blocks until a socket is ready, an instant has come or a signal asks the program to stop. No busy
 * waiting.
 *
 * The instant is set by a timerfd, not by a timeout of epoll_wait(): the kernel may end such a timeout 0.1
 * % late (select_estimate_accuracy() in fs/select.c, whatever the timer slack), which is 50 ms at 50 s. The
 * socket is watched edge triggered: after WAIT_SOCKET read or write until the kernel transfers less than
 * asked for, or no further event comes.
 */
#ifndef NETWARP_WAITER_H
#define NETWARP_WAITER_H

#include <stdbool.h>
#include <stdint.h>

#define WAIT_NEVER INT64_MAX

/* The result of waiter_wait(): a mask of these, or -1 with errno set. */
#define WAIT_TIME    1 /* the instant has come */
#define WAIT_SOCKET  2 /* waiter->events says what the socket has */
#define WAIT_STOPPED 4 /* SIGTERM or SIGINT */
#define WAIT_DOWN    8 /* the program's host or process is down: waiter_down() */

struct waiter {
	bool hosted; /* waiter_set_host() */
	int epoll_fd, timer_fd;
	int64_t armed_ns; /* instant the timer is set to, CLOCK_MONOTONIC; WAIT_NEVER: off */
	uint32_t events;  /* EPOLL* flags of the socket, set by the last waiter_wait() */
};

#define WAITER_CLOSED                                                                                        \
	{                                                                                                    \
		.epoll_fd = -1, .timer_fd = -1                                                               \
	}

/* Also blocks SIGTERM and SIGINT outside waiter_wait(), and ignores SIGPIPE. 0, or -1 with errno set. */
int waiter_open(struct waiter *waiter);
void waiter_close(struct waiter *waiter);

/*
 * From now on the waiters of this process share the host's epoll, where each is the data of its sockets, and
 * wait by its function. Also does to signals what waiter_open() does. 0, or -1 with errno set.
 */
struct waiter_host {
	int epoll_fd;
	int (*wait)(struct waiter *waiter, int64_t until_ns);
};
int waiter_set_host(const struct waiter_host *host);

/* Watch `fd` for input; `write`: also for room to send. A receiver passes false, to be woken less often. */
int waiter_watch(struct waiter *waiter, int fd, bool write);

/*
 * Wait for the socket or until CLOCK_MONOTONIC shows `until_ns`. When both happen at once both bits are
 * set: the caller acts on WAIT_TIME first.
 */
int waiter_wait(struct waiter *waiter, int64_t until_ns);

/*
 * Call them around a read of `fd` that may block: SIGTERM and SIGINT end the read by EINTR, or, when they
 * arrive just before it, because their handler makes the socket non-blocking for good. waiter_stopped():
 * whether such a signal has arrived.
 */
void waiter_let_signals_in(int fd);
void waiter_keep_signals_out(void);
bool waiter_stopped(void);

/*
 * The program acts as if its host (SIGUSR1) or its process (SIGHUP) had been killed, until it is started
 * again (SIGUSR2). waiter_down(): the signal of those that has arrived last; 0: neither, or it is up again.
 * waiter_until_up(): wait for that; returns as waiter_wait(). Such a program must not block in reads.
 */
int waiter_down(void);
int waiter_until_up(struct waiter *waiter);

#endif
