/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock: nanoseconds, and sleeps that end at an instant.
 *
 * In virtual time (UML time-travel=inf-cpu) every clock read costs 256 virtual ns and nothing else moves the
 * clock while a process computes: read it once per decision, never in a loop that waits for it.
 */
#ifndef NETWARP_CLOCK_H
#define NETWARP_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NS_PER_S INT64_C(1000000000)

int64_t clock_realtime_ns(void);
int64_t clock_monotonic_ns(void);

/* CLOCK_MONOTONIC minus CLOCK_REALTIME at this moment; what reading them costs in virtual time cancels out.
 */
int64_t clock_monotonic_offset_ns(void);

struct timespec clock_timespec(int64_t ns);

/*
 * A clock that costs no virtual time to read: CLOCK_REALTIME as seen by a timer that is armed for the far
 * future (the kernel computes what remains with interrupts off, where time-travel does not charge for the
 * read). For a time that must be read without changing it. clock_still_open() returns a descriptor, or -1
 * with errno set.
 */
int clock_still_open(void);
int64_t clock_still_ns(int fd);

/*
 * Sleep until CLOCK_REALTIME shows `realtime_ns` (an instant that has passed: at once). Returns 0, or EINTR
 * when a signal handler ran first: the caller decides whether to go on sleeping.
 */
int clock_sleep_until(int64_t realtime_ns);

/*
 * Timer slack of 1 ns for this thread, inherited by its children (the default makes every sleep 50 us late).
 * Returns 0, or -1 with errno set.
 */
int clock_timerslack(void);

#endif
