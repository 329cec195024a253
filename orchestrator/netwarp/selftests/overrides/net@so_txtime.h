/* Included first when net/so_txtime.c is compiled. It reads the clock, sends a packet that is due at that
 * time, and asks that the qdisc (etf) call it late. On a machine the way to the qdisc takes microseconds. On
 * the virtual clock it takes nothing, and the kernel's own readings cost nothing where softirqs are off
 * (arch/um/kernel/time.c, timer_read), as they are in a qdisc. A second reading lets 256 ns pass after the
 * one that counts.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <time.h>

static int read_and_pass(clockid_t clock, struct timespec *read)
{
	struct timespec later;
	int status = clock_gettime(clock, read);

	clock_gettime(clock, &later);
	return status;
}

#define clock_gettime read_and_pass
