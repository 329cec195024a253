// SPDX-License-Identifier: Apache-2.0
#include "clock.h"

#include <sys/prctl.h>

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

struct timespec clock_timespec(int64_t ns)
{
	struct timespec t = {.tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S};

	return t;
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
