// SPDX-License-Identifier: Apache-2.0
/* Documented in clock.h. */
#include "clock.h"

#include <errno.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define FAR_NS (INT64_C(4000000000) * NS_PER_S) /* the year 2096 */

static int64_t read_clock(clockid_t id)
{
	struct timespec now;

	/* cannot fail: the clock exists and the pointer is good */
	clock_gettime(id, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

int64_t clock_realtime_ns(void)
{
	return read_clock(CLOCK_REALTIME);
}

int64_t clock_monotonic_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

int64_t clock_monotonic_offset_ns(void)
{
	int64_t before = clock_monotonic_ns();
	int64_t realtime = clock_realtime_ns();
	int64_t after = clock_monotonic_ns();

	return before + (after - before) / 2 - realtime;
}

struct timespec clock_timespec(int64_t ns)
{
	struct timespec t = {.tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S};

	return t;
}

int clock_still_open(void)
{
	struct itimerspec far = {.it_value = clock_timespec(FAR_NS)};
	int fd = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC), error;

	if (fd < 0)
		return -1;
	if (timerfd_settime(fd, TFD_TIMER_ABSTIME, &far, NULL)) {
		error = errno;
		close(fd);
		errno = error;
		return -1;
	}
	return fd;
}

int64_t clock_still_ns(int fd)
{
	struct itimerspec left;

	/* cannot fail: the descriptor is a timer and the pointer is good */
	timerfd_gettime(fd, &left);
	return FAR_NS - left.it_value.tv_sec * NS_PER_S - left.it_value.tv_nsec;
}

int clock_sleep_until(int64_t realtime_ns)
{
	struct timespec until = clock_timespec(realtime_ns);

	return clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &until, NULL);
}

int clock_timerslack(void)
{
	return prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
}
