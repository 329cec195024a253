/* SPDX-License-Identifier: Apache-2.0 */
/* tap: the capture process, and what it and cell-init say to each other (a SOCK_SEQPACKET pair). */
#ifndef NETWARP_TAP_H
#define NETWARP_TAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TAP_DRAIN 'd' /* the one command: stop, drain, report, exit; so is the end of the connection */

struct tap_request {
	int ns;
	int ifindex;
	const char *iface;
	const char *file;
	uint32_t block_bytes;
	uint32_t blocks;
	bool forget; /* see struct pcap */
};

enum tap_kind {
	TAP_BOUND,  /* every socket captures */
	TAP_FAILED, /* `error` and `text` say what; .index which, or -1 */
	TAP_RESULT, /* one an interface, after TAP_DRAIN */
};

struct tap_message {
	enum tap_kind kind;
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
int tap_run(const struct tap_request *requests, size_t count, int control_fd);

#endif
