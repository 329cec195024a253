/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cell: the state of the one cell that this process runs, and how it fails.
 *
 * The first failure is kept as the cell's reason; every function that can fail then returns -1, and main()
 * unwinds to the record `end`.
 */
#ifndef NETWARP_CELL_H
#define NETWARP_CELL_H

#include "ndjson.h"

#include <stdbool.h>
#include <stdint.h>

enum reason {
	REASON_NONE,
	REASON_COMPLETED,
	REASON_TIMED_OUT,
	REASON_FAILED,
	REASON_UNSUPPORTED, /* this kernel cannot, or does not let us */
};

struct cell {
	struct ndjson out; /* init.ndjson */
	bool guest;	   /* pid 1 of a kernel; else first process of namespaces */
	bool running;	   /* `ready` was reached */

	enum reason reason;
	unsigned int reason_step; /* line of the step that failed; 0: none */
	char message[512];
	unsigned int step; /* line of the step that is carried out; 0: none */

	bool t0_known;
	int64_t t0_realtime_ns;
	int clock_fd;
};

/* CLOCK_REALTIME, at no cost in virtual time. */
int cell_open_clock(struct cell *cell);
int64_t cell_now(const struct cell *cell);

/* Set the reason, once; returns -1 so that callers can `return cell_fail(...)`. */
int cell_fail(struct cell *cell, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same, with ": <text of error>" behind it. */
int cell_fail_errno(struct cell *cell, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same, for a deadline. */
int cell_time_out(struct cell *cell, const char *message);

#endif
