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
	bool guest;   /* true: pid 1 of a guest kernel; false: pid 1 of namespaces on this machine's kernel */
	bool running; /* the step `ready` was carried out */

	enum reason reason;
	unsigned int reason_step; /* line in steps.txt of the step that failed; 0: no step */
	char message[512];
	unsigned int step; /* line of the step being carried out; 0: no step */

	bool t0_known;
	int64_t t0_realtime_ns;
	int clock_fd;
};

/*
 * CLOCK_REALTIME in ns. cell_now() reads the clock without advancing virtual time (clock.h,
 * clock_still_ns()); an ordinary clock_gettime() advances it by 256 ns, which moves every later packet of
 * the cell.
 */
int cell_open_clock(struct cell *cell);
int64_t cell_now(const struct cell *cell);

/*
 * Set reason REASON_FAILED, the step and the message, unless a reason is set already: the first failure
 * stays. Always returns -1, so that callers can `return cell_fail(...)`.
 */
int cell_fail(struct cell *cell, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same; ": <strerror(error)> (errno N)" is appended to the message. */
int cell_fail_errno(struct cell *cell, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same with REASON_TIMED_OUT, for a deadline that has passed. */
int cell_time_out(struct cell *cell, const char *message);

#endif
