/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report: what happened, as NDJSON in drill.ndjson of the guest's directory (docs/formats.md, The player of
 * packetdrill's scripts). Threads share it: a line is written between report_begin() and report_end(), which
 * hold a lock. Times are CLOCK_REALTIME in ns, read without advancing virtual time.
 */
#ifndef NETWARP_DRILL_REPORT_H
#define NETWARP_DRILL_REPORT_H

#include "ndjson.h"

#include <stddef.h>
#include <stdint.h>

#define DIRECTORY "/run/own"

/* Opens the file and the clock. 0, or -1 with errno set. */
int report_open(void);
int64_t report_now_ns(void);
/* A line about event `event` (-1: about none of them). */
struct ndjson *report_begin(const char *record, int event);
void report_end(void);
/* Bytes of a packet or of memory: "data" without the zeros at its end, "length". */
void report_bytes(struct ndjson *out, const void *data, size_t length);
/* The line `failed`: the script cannot go on. */
void report_failed(int event, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
