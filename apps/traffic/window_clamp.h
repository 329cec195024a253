/* SPDX-License-Identifier: Apache-2.0 */
/*
 * window_clamp: a TCP receiver whose largest offered window is exactly so many bytes, and never one more.
 *
 * Linux has no plain switch for it. What it has (6.12, net/ipv4):
 *  - TCP_WINDOW_CLAMP on the listener fixes the window scale of its connections: 2^(floor(log2 clamp) - 15),
 * the finest that can express the clamp (tcp_select_initial_window). But with a locked (SO_RCVBUF) buffer
 * whose share for payload is below the clamp the scale is taken from that (tcp_openreq_init_rwin): hence
 *    SO_BUF_LOCK takes the lock off again.
 *  - The first full segment tells what share of the buffer is payload; that share, of sk_rcvbuf, then
 * OVERWRITES the clamp (tcp_measure_rcv_mss). Until then the receive buffer is as small as the clamp itself:
 * payload can never be more than all of it, so the window stays below the clamp whatever the share turns out
 * to be.
 *  - Once a segment of the full size has been read the share is known: now the buffer grows, so that data
 * which waits to be read or for a gap to be filled never narrows the window, and the clamp is set again, for
 * good.
 *  - The share is measured again only when the segment size changes. So the clamp is read after every read: a
 *    change is undone at once, counted, and makes the run fail, for windows above the clamp may have been
 * offered.
 */
#ifndef NETWARP_WINDOW_CLAMP_H
#define NETWARP_WINDOW_CLAMP_H

#include <stdbool.h>

struct flow;

struct window_clamp {
	int bytes;	   /* 0: no clamp asked for */
	bool in_force;	   /* the second clamp is set */
	unsigned int lost; /* how often the kernel overwrote it */
};

/* Before listen(). */
int window_clamp_listen(struct window_clamp *clamp, struct flow *flow, int fd);
/* Right after accept(). */
int window_clamp_accepted(struct window_clamp *clamp, struct flow *flow);
/* After every read. */
int window_clamp_received(struct window_clamp *clamp, struct flow *flow);

#endif
