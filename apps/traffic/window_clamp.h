/* SPDX-License-Identifier: Apache-2.0 */
/*
 * window_clamp: a TCP receiver whose largest offered window is exactly so many bytes, and never one more.
 *
 * Linux has no plain switch for it. What it has (6.12, net/ipv4):
 *
 * TCP_WINDOW_CLAMP on the listener fixes the window scale of its connections: 2^(floor(log2 clamp) - 15), the
 * finest that can express the clamp (tcp_select_initial_window). But with a locked (SO_RCVBUF) buffer whose
 * share for payload is below the clamp, the scale is taken from that share (tcp_openreq_init_rwin): hence
 * SO_BUF_LOCK takes the lock off again until the connection is accepted.
 *
 * The first full segment determines which share of the buffer is payload; that share of sk_rcvbuf then
 * OVERWRITES the clamp (tcp_measure_rcv_mss). Until then the receive buffer is as small as the clamp itself:
 * payload can never be more than all of it, so the window stays below the clamp whatever the share turns out
 * to be.
 *
 * Once a segment of full size has been read, the share is known. Now the buffer grows, so that data which
 * waits to be read, or for a gap to be filled, does not narrow the window, and the clamp is set again, for
 * good.
 *
 * The share is measured again only when the segment size changes. So the clamp is read back after every read
 * that is no multiple of the segment size, and at the end: a change is undone at once and makes the run fail,
 * for a window above the clamp may have been offered.
 */
#ifndef NETWARP_WINDOW_CLAMP_H
#define NETWARP_WINDOW_CLAMP_H

#include <stddef.h>

struct flow;

struct window_clamp {
	int bytes;   /* 0: no clamp asked for */
	int segment; /* the full segment's size once the clamp is set for good; 0: not yet */
};

/* Before listen(). */
int window_clamp_listen(struct window_clamp *clamp, struct flow *flow, int fd);
/* Right after accept(). */
int window_clamp_accepted(struct window_clamp *clamp, struct flow *flow);
/* After every read of `bytes`. */
int window_clamp_received(struct window_clamp *clamp, struct flow *flow, size_t bytes);
/* At the end: the member window_clamp_bytes, what is in force (null: never set for good). */
void window_clamp_finish(struct window_clamp *clamp, struct flow *flow);

#endif
