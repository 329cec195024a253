/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop: the one event loop: one thread, one epoll set, nothing spins. It calls what was registered and knows
 * no other module. The timer that fired says what time it is, so the loop reads no clock (a read costs 256
 * virtual ns).
 *
 * Everything that can fail returns 0, or -1 with the cell's reason set; so must every callback.
 */
#ifndef NETWARP_LOOP_H
#define NETWARP_LOOP_H

#include "cell.h"

#define LOOP_WOKEN 0 /* something happened, or nothing did: look again */
#define LOOP_TIMER 1 /* the timer of loop_wake_at() or loop_wake_in() */

int loop_open(struct cell *cell);
void loop_close(void);

/*
 * Wait for at least one event. Returns LOOP_TIMER, LOOP_WOKEN or -1. What the timeline does at an instant
 * comes first: with LOOP_TIMER nothing else was called yet. Otherwise what is due is called in this order:
 * the periodic timer, signals, descriptors, the deadline.
 */
int loop_wait(struct cell *cell);

/* `ready` is called when the descriptor is readable; NULL: it only wakes loop_wait(). */
int loop_add(struct cell *cell, int fd, int (*ready)(struct cell *cell));
void loop_remove(int fd);
/* Called after SIGCHLD. SIGTERM and SIGINT fail the cell. */
void loop_on_child(int (*handler)(struct cell *cell));

/* The timer of loop_wait()'s caller: an instant of CLOCK_REALTIME, or so long from now; 0 disarms it. */
int loop_wake_at(struct cell *cell, int64_t realtime_ns);
int loop_wake_in(struct cell *cell, int64_t ns);
/* The deadline, after which the cell has timed out. */
int loop_deadline_at(struct cell *cell, int64_t realtime_ns);
int loop_deadline_in(struct cell *cell, int64_t ns);
/* From `first_ns` (CLOCK_REALTIME) on, every `period_ns`; `times`: how often it has become due since. */
int loop_every(struct cell *cell, int64_t first_ns, int64_t period_ns,
	       int (*handler)(struct cell *cell, uint64_t times));

#endif
