// SPDX-License-Identifier: Apache-2.0
/*
 * program-clock.so: preloaded into the user's programs in virtual time.
 *
 * On the virtual clock computing takes no time, and reading the clock 256 ns. A program that reads the clock
 * in a loop until some instant would need millions of reads. Here such a program is put to sleep, as it would
 * be if it were well written: after SPIN_READS reads with at most SPIN_GAP_NS between each two, each further
 * read sleeps first, for SLEEP_MIN_NS and then twice as long each time, up to SLEEP_MAX_NS. A longer gap (the
 * program waited for something) ends that. The read itself is the kernel's: a program that does not spin
 * notices nothing. Only virtual time counts, so that equal cells have equal sleeps.
 *
 * The first sleep is written to the file that NETWARP_SPUN names.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/times.h>
#include <time.h>
#include <unistd.h>

#define EXPORT	   __attribute__((visibility("default")))
#define NS_PER_S   INT64_C(1000000000)
#define SPIN_READS 64
/* A turn of a loop with select() or poll() reads the clock some twenty times in the kernel: 5 us. */
#define SPIN_GAP_NS  10000
#define SLEEP_MIN_NS 1000
#define SLEEP_MAX_NS 1000000

/* One thread's reads of CLOCK_REALTIME and of CLOCK_MONOTONIC. */
static _Thread_local struct spin {
	int64_t last_ns, sleep_ns;
	unsigned int reads;
} spins[2];

static int64_t now_ns(clockid_t clock)
{
	struct timespec now = {0};

	syscall(SYS_clock_gettime, clock, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

static void tell(void)
{
	static int told;
	const char *path = getenv("NETWARP_SPUN");
	char line[64];
	int fd, length;

	if (__atomic_exchange_n(&told, 1, __ATOMIC_RELAXED) || !path)
		return;
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (fd < 0)
		return;
	length = snprintf(line, sizeof(line), "{\"realtime_ns\":%" PRId64 "}\n", now_ns(CLOCK_REALTIME));
	if (write(fd, line, (size_t)length) != length)
		unlink(path); /* half a line is none */
	close(fd);
}

/* After a read of the clock, which is a turn of a loop if nothing but reads took time since the last. True:
 * it slept. */
static bool slept(clockid_t clock, int64_t now)
{
	struct spin *spin = &spins[clock == CLOCK_MONOTONIC];
	int64_t gap_ns = now - spin->last_ns;
	int saved_errno = errno;

	spin->last_ns = now;
	if (gap_ns > SPIN_GAP_NS) {
		spin->reads = 0;
		spin->sleep_ns = SLEEP_MIN_NS;
	}
	if (++spin->reads <= SPIN_READS)
		return false;
	tell();
	syscall(SYS_nanosleep, &(struct timespec){.tv_nsec = spin->sleep_ns}, NULL);
	spin->last_ns = now_ns(clock);
	spin->sleep_ns = spin->sleep_ns * 2 < SLEEP_MAX_NS ? spin->sleep_ns * 2 : SLEEP_MAX_NS;
	errno = saved_errno;
	return true;
}

EXPORT int clock_gettime(clockid_t clock, struct timespec *time)
{
	int result = (int)syscall(SYS_clock_gettime, clock, time);

	if (!result && (clock == CLOCK_MONOTONIC || clock == CLOCK_REALTIME) &&
	    slept(clock, time->tv_sec * NS_PER_S + time->tv_nsec))
		result = (int)syscall(SYS_clock_gettime, clock, time);
	return result;
}

EXPORT int gettimeofday(struct timeval *restrict time, void *restrict zone)
{
	int result = (int)syscall(SYS_gettimeofday, time, zone);

	if (!result && slept(CLOCK_REALTIME, time->tv_sec * NS_PER_S + time->tv_usec * 1000))
		result = (int)syscall(SYS_gettimeofday, time, zone);
	return result;
}

/* These two tell too little of the time: it is read once more. */
EXPORT time_t time(time_t *when)
{
	slept(CLOCK_MONOTONIC, now_ns(CLOCK_MONOTONIC));
	return (time_t)syscall(SYS_time, when);
}

EXPORT clock_t times(struct tms *buffer)
{
	slept(CLOCK_MONOTONIC, now_ns(CLOCK_MONOTONIC));
	return (clock_t)syscall(SYS_times, buffer);
}
