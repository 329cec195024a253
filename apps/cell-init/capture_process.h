/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capture_process: the process that captures all interfaces of a cell, and the messages it exchanges with
 * cell-init over a SOCK_SEQPACKET socket pair.
 *
 * It runs with real-time priority SCHED_FIFO 1 where the kernel permits: above the programs, so that a ring
 * is emptied before it is full, and below cell-init. Where it is refused the process keeps normal priority.
 */
#ifndef NETWARP_CAPTURE_PROCESS_H
#define NETWARP_CAPTURE_PROCESS_H

#include "packet_ring.h"

#include <stddef.h>
#include <stdint.h>

/* cell-init's only command: stop, drain, report, exit. Closing the socket has the same effect. */
#define CAPTURE_DRAIN 'd'

enum capture_message_kind {
	CAPTURE_BOUND,	/* every packet socket captures */
	CAPTURE_FAILED, /* .error and .text say what failed; .index: the interface, or -1 for the whole
			   process */
	CAPTURE_RESULT, /* one message per interface, after CAPTURE_DRAIN */
};

struct capture_message {
	enum capture_message_kind kind;
	int index;	 /* of the interface in `configs` */
	int error;	 /* errno of the first failed write; 0: none */
	int fsync_error; /* errno of fsync(2); 0: none */
	uint64_t packets;
	uint64_t bytes; /* of the file */
	uint64_t dropped;
	uint64_t truncated;	   /* packets longer than a ring block could hold */
	int64_t first_realtime_ns; /* 0: no packet */
	int64_t last_realtime_ns;
	char text[64];
};

/*
 * The main function of the forked capture process; returns its exit status once it has been drained. Messages
 * name an interface by its index in `configs`, so cell-init must not reorder that array.
 */
int capture_process_run(const struct packet_ring_config *configs, size_t count, int control_fd);

#endif
