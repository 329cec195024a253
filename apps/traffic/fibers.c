// SPDX-License-Identifier: Apache-2.0
/* Documented in fibers.h. */
#include "fibers.h"

#include "clock.h"
#include "waiter.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <ucontext.h>
#include <unistd.h>

#define STACK_BYTES 131072
#define EVENTS_MAX  64

struct fiber {
	ucontext_t context;
	void *flow, *stack;
	struct waiter *waiter; /* in which it waits */
	int64_t until_ns;
	int result; /* of its wait */
	bool ended;
};

static const struct fibers *program;
static struct fiber *current;
static ucontext_t scheduler;

static void begin(void)
{
	program->run(current->flow);
	current->ended = true;
	swapcontext(&current->context, &scheduler);
}

static void resume(struct fiber *fiber)
{
	current = fiber;
	program->resumed(fiber->flow);
	swapcontext(&scheduler, &fiber->context);
	if (fiber->ended && fiber->stack) {
		munmap(fiber->stack, STACK_BYTES);
		fiber->stack = NULL;
	}
}

static int wait_in(struct waiter *waiter, int64_t until_ns)
{
	struct fiber *fiber = current;

	waiter->events = 0;
	fiber->waiter = waiter;
	fiber->until_ns = until_ns;
	swapcontext(&fiber->context, &scheduler);
	return fiber->result;
}

static int make(struct fiber *fiber, void *flow)
{
	fiber->flow = flow;
	fiber->stack =
	    mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	if (fiber->stack == MAP_FAILED) {
		fiber->stack = NULL;
		return -1;
	}
	if (getcontext(&fiber->context))
		return -1;
	fiber->context.uc_stack.ss_sp = fiber->stack;
	fiber->context.uc_stack.ss_size = STACK_BYTES;
	makecontext(&fiber->context, begin, 0);
	return 0;
}

/* Block until at least one fiber has something to do. Returns -1 with errno, or 1 if the timer has expired.
 */
static int block(int epoll_fd, int timer_fd, int64_t *armed_ns, int64_t until_ns)
{
	struct itimerspec when = {.it_value = clock_timespec(until_ns > 0 ? until_ns : 1)};
	struct epoll_event events[EVENTS_MAX];
	struct waiter *waiter;
	int n, i, expired = 0;
	sigset_t none;

	if (until_ns < *armed_ns && timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &when, NULL))
		return -1;
	if (until_ns < *armed_ns)
		*armed_ns = until_ns;
	sigemptyset(&none);
	n = epoll_pwait(epoll_fd, events, EVENTS_MAX, -1, &none);
	if (n < 0 && errno != EINTR)
		return -1;
	for (i = 0; i < n; i++) {
		waiter = events[i].data.ptr;
		if (waiter)
			waiter->events |= events[i].events;
		else
			expired = 1;
	}
	if (expired)
		*armed_ns = WAIT_NEVER;
	return expired;
}

/* Until all have ended. */
static int schedule_all(struct fiber *fibers, unsigned int count, int epoll_fd, int timer_fd)
{
	int64_t armed_ns = WAIT_NEVER, until_ns, now;
	unsigned int i, alive;
	int expired;

	for (;;) {
		until_ns = WAIT_NEVER;
		for (i = alive = 0; i < count; i++) {
			alive += !fibers[i].ended;
			if (!fibers[i].ended && fibers[i].until_ns < until_ns)
				until_ns = fibers[i].until_ns;
		}
		if (!alive)
			return 0;
		expired = block(epoll_fd, timer_fd, &armed_ns, until_ns);
		if (expired < 0)
			return -1;
		now = expired ? clock_monotonic_ns() : INT64_MIN;
		for (i = 0; i < count; i++) {
			if (fibers[i].ended)
				continue;
			fibers[i].result = (fibers[i].waiter->events ? WAIT_SOCKET : 0) |
					   (fibers[i].until_ns <= now ? WAIT_TIME : 0) |
					   (waiter_stopped() ? WAIT_STOPPED : 0);
			if (fibers[i].result)
				resume(&fibers[i]);
		}
	}
}

int fibers_run(const struct fibers *fibers, void *const *flows, unsigned int count)
{
	struct waiter_host host = {.wait = wait_in};
	struct epoll_event event = {.events = EPOLLIN | EPOLLET};
	struct fiber *all = calloc(count, sizeof(*all));
	int timer_fd, result = -1;
	unsigned int i;

	program = fibers;
	host.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (!all || host.epoll_fd < 0 || timer_fd < 0 || waiter_set_host(&host) ||
	    epoll_ctl(host.epoll_fd, EPOLL_CTL_ADD, timer_fd, &event))
		goto out;
	for (i = 0; i < count; i++)
		if (make(&all[i], flows[i]))
			goto out;
	for (i = 0; i < count; i++)
		resume(&all[i]);
	fibers->all_wait();
	result = schedule_all(all, count, host.epoll_fd, timer_fd);
out:
	for (i = 0; all && i < count; i++)
		if (all[i].stack)
			munmap(all[i].stack, STACK_BYTES);
	free(all);
	if (timer_fd >= 0)
		close(timer_fd);
	if (host.epoll_fd >= 0)
		close(host.epoll_fd);
	return result;
}
