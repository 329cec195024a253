/* SPDX-License-Identifier: Apache-2.0 */
/*
 * waiter: block until a socket has something to do, an instant has come or a signal asks to stop; never spin.
 *
 * The instants come from a timerfd, not from a timeout: epoll and poll round a timeout up by 0.1 % (the
 * kernel's select_estimate_accuracy, whatever the timer slack), which is 50 ms at 50 s. The socket is watched
 * edge triggered: after waiter_wait() returns WAIT_SOCKET read or write until less than asked went through.
 */
#ifndef NETWARP_WAITER_H
#define NETWARP_WAITER_H

#include <stdbool.h>
#include <stdint.h>

#define WAIT_NEVER INT64_MAX

/* What waiter_wait() returns: a mask of these, or -1 with errno set. */
#define WAIT_TIME    1 /* the instant has come */
#define WAIT_SOCKET  2 /* waiter->events says what the socket has */
#define WAIT_STOPPED 4 /* SIGTERM or SIGINT */

struct waiter {
	int epoll_fd, timer_fd;
	int64_t armed_ns; /* what the timer is set to, CLOCK_MONOTONIC; WAIT_NEVER: off */
	uint32_t events;  /* EPOLL*: of the socket, from the last waiter_wait() */
};

/* Also blocks SIGTERM and SIGINT outside waiter_wait(). 0, or -1 and errno. */
int waiter_open(struct waiter *waiter);
void waiter_close(struct waiter *waiter);

/* `write`: also when the socket has room again (what only reads need not wake up for that). */
int waiter_watch(struct waiter *waiter, int fd, bool write);

/* Wait for the socket or until CLOCK_MONOTONIC shows `until_ns`. When both come at once, what is due goes
 * first. */
int waiter_wait(struct waiter *waiter, int64_t until_ns);

/*
 * Around a read of `fd` that may block: SIGTERM and SIGINT end it, by EINTR or, when they came just before
 * it, by making the socket non-blocking for good. waiter_stopped(): one of them came.
 */
void waiter_let_signals_in(int fd);
void waiter_keep_signals_out(void);
bool waiter_stopped(void);

#endif
