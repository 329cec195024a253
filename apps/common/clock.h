/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock: reads clocks in nanoseconds and sleeps until an instant.
 *
 * In virtual time (UML time-travel=inf-cpu) each clock read advances the clock by 256 ns, and computing
 * does not advance it. So read the clock once per decision, and never in a loop that waits for a time.
 * Another number of reads means other time stamps in all later packets of the cell.
 */
#ifndef NETWARP_CLOCK_H
#define NETWARP_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NS_PER_S INT64_C(1000000000)

int64_t clock_realtime_ns(void);
int64_t clock_monotonic_ns(void);

/*
 * CLOCK_MONOTONIC minus CLOCK_REALTIME, in ns. It reads the clocks three times, in an order in which the
 * 256 ns per read cancel out.
 */
int64_t clock_monotonic_offset_ns(void);

struct timespec clock_timespec(int64_t ns);

/*
 * CLOCK_REALTIME, read without advancing virtual time: clock_still_open() arms a timerfd for the far future
 * and returns its descriptor (-1 with errno set on failure), and clock_still_ns() computes the time from
 * what remains of it. The kernel computes that remainder with interrupts off, where time-travel mode does
 * not charge for the read. Use it for times that are only recorded.
 */
int clock_still_open(void);
int64_t clock_still_ns(int fd);

/*
 * Sleep until CLOCK_REALTIME shows `realtime_ns`; return at once if that instant has passed. Returns 0, or
 * EINTR when a signal handler ran first: the caller decides whether to sleep again.
 */
int clock_sleep_until(int64_t realtime_ns);

/*
 * Set the timer slack of this thread and its future children to 1 ns (PR_SET_TIMERSLACK). With Linux'
 * default of 50 us every sleep may end that much late. Returns 0, or -1 with errno set.
 */
int clock_timerslack(void);

#endif
