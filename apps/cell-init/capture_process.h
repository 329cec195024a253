/* SPDX-License-Identifier: Apache-2.0 */
/* capture_process: the capture process, and its messages with cell-init (a SOCK_SEQPACKET pair). */
#ifndef NETWARP_CAPTURE_PROCESS_H
#define NETWARP_CAPTURE_PROCESS_H

#include "packet_ring.h"

#include <stddef.h>
#include <stdint.h>

#define CAPTURE_DRAIN 'd' /* the one command: stop, drain, report, exit; so is the end of the connection */

enum capture_message_kind {
	CAPTURE_BOUND,	/* every socket captures */
	CAPTURE_FAILED, /* `error` and `text` say what; .index: of which interface, or -1 */
	CAPTURE_RESULT, /* one for each interface, after CAPTURE_DRAIN */
};

struct capture_message {
	enum capture_message_kind kind;
	int index; /* of the request */
	int error;
	int fsync_error;
	uint64_t packets;
	uint64_t bytes;
	uint64_t dropped;
	uint64_t truncated;
	int64_t first_realtime_ns; /* 0: no packet */
	int64_t last_realtime_ns;
	char text[64];
};

/* Runs in the forked process until drained; returns its exit status. */
int capture_process_run(const struct packet_ring_config *configs, size_t count, int control_fd);

#endif
