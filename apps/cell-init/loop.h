/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop: cell-init's event loop: one thread, one epoll set, no busy waiting. It calls the handlers that other
 * modules registered and includes none of those modules.
 *
 * The loop reads no clock: a caller that armed a timer for T knows that it is T when the timer fires. A clock
 * read costs 256 virtual ns and would move every later packet.
 *
 * Functions that can fail return 0, or -1 with the cell's reason set; so must every handler.
 */
#ifndef NETWARP_LOOP_H
#define NETWARP_LOOP_H

#include "cell.h"

#define LOOP_WOKEN 0 /* an event was handled, or the wait was interrupted: check the condition again */
#define LOOP_TIMER 1 /* the timer of loop_wake_at() or loop_wake_in() has expired */

int loop_open(struct cell *cell);
void loop_close(void);

/*
 * Wait for at least one event. Returns LOOP_TIMER, LOOP_WOKEN or -1. With LOOP_TIMER no handler has been
 * called: a step of the timeline is carried out before other events of the same instant, and their handlers
 * run at the next call. Otherwise the handlers run in this order: periodic timer, signals, descriptors,
 * deadline. The order is fixed so that equal cells act equally.
 */
int loop_wait(struct cell *cell);

/*
 * Watch a descriptor (at most 4 at a time). `ready` is called when it is readable; NULL: loop_wait() only
 * returns.
 */
int loop_add(struct cell *cell, int fd, int (*ready)(struct cell *cell));
void loop_remove(int fd);
/* Set the handler of SIGCHLD. loop_open() blocks SIGCHLD, SIGTERM and SIGINT; the last two fail the cell. */
void loop_on_child(int (*handler)(struct cell *cell));

/*
 * Arm the timer that makes loop_wait() return LOOP_TIMER: at an instant of CLOCK_REALTIME, or after `ns`.
 * loop_wake_at(cell, 0) disarms it. There is one such timer: arming it again replaces the earlier instant.
 */
int loop_wake_at(struct cell *cell, int64_t realtime_ns);
int loop_wake_in(struct cell *cell, int64_t ns);
/* Arm the deadline: when it passes, the cell ends with REASON_TIMED_OUT. */
int loop_deadline_at(struct cell *cell, int64_t realtime_ns);
int loop_deadline_in(struct cell *cell, int64_t ns);
/*
 * Call `handler` at `first_ns` (CLOCK_REALTIME) and every `period_ns` after it. `times`: the number of
 * periods that have passed since the last call (more than 1 when the host was late).
 */
int loop_every(struct cell *cell, int64_t first_ns, int64_t period_ns,
	       int (*handler)(struct cell *cell, uint64_t times));

#endif
