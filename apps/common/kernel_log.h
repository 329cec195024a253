/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_log: puts what a guest's kernel says of its own faults onto the console, which netwarp reads after
 * the end (store/console.py). For the first program of a guest, with /sys mounted. None of it moves virtual
 * time before T0's programs run, and a failure is no reason to end: the console then says less.
 */
#ifndef NETWARP_KERNEL_LOG_H
#define NETWARP_KERNEL_LOG_H

/* From now on warnings are on the console too (`quiet` leaves errors only), each line with its time. */
void kernel_log_open(void);

/*
 * Where the kernel has kmemleak: have it look for lost memory, and print what it found. To be called last: it
 * sleeps, because what is younger than some seconds is not reported.
 */
void kernel_log_leaks(void);

#endif
