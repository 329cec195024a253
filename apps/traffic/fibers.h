/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fibers: many flows in one process. Each flow runs on a stack of its own, with the code of a single one;
 * where that would block (waiter_wait()), the others go on. One epoll and one timer serve them all.
 */
#ifndef NETWARP_FIBERS_H
#define NETWARP_FIBERS_H

struct fibers {
	void (*run)(void *flow);     /* one flow, from its beginning to its end */
	void (*resumed)(void *flow); /* called before a flow goes on */
	void (*all_wait)(void);	     /* called once, when each flow has come to its first wait */
};

/*
 * Run these flows until all have ended; in the order given where several have something to do. 0, or -1 with
 * errno.
 */
int fibers_run(const struct fibers *fibers, void *const *flows, unsigned int count);

#endif
