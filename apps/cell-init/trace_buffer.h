/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_buffer: decodes the kernel's trace ring buffer: its tracepoints sctp:sctp_probe_path (every path of
 * an association, at every SACK it gets) and tcp:tcp_probe (at every segment an established connection gets)
 * as records of fixed size.
 *
 * Each shows the state before the packet is processed. Pure: no system call, tested on the host.
 */
#ifndef NETWARP_TRACE_BUFFER_H
#define NETWARP_TRACE_BUFFER_H

#include <stddef.h>
#include <stdint.h>

enum trace_kind {
	TRACE_SCTP_PATH = 1,
	TRACE_TCP = 2,
};

/* One event, 64 bytes, little endian (docs/formats.md). A field the event does not have is 0. */
struct trace_record {
	int64_t t_ns;	     /* CLOCK_MONOTONIC */
	uint64_t connection; /* the kernel's own number of the association or socket */
	uint32_t cwnd;	     /* SCTP: bytes; TCP: packets */
	uint32_t ssthresh;   /* likewise */
	uint32_t flight;     /* SCTP: bytes in flight on the path; TCP: snd_nxt - snd_una, bytes */
	uint32_t acked;	     /* SCTP: partial_bytes_acked; TCP: payload bytes of the segment */
	uint32_t mtu;	     /* SCTP: path MTU; TCP: the peer's window, bytes */
	uint32_t state;	     /* SCTP: of the path (RFC 6458's numbers); TCP: smoothed RTT, us */
	uint16_t local_port; /* TCP */
	uint16_t peer_port;
	uint8_t kind;
	uint8_t primary; /* SCTP: 1 for the primary path */
	uint8_t family;	 /* 4 or 6 */
	uint8_t zero;
	uint8_t address[16]; /* the peer's, network byte order */
};

/* Where a field of an event is, by its format file. */
struct trace_field {
	size_t offset, size;
};

#define TRACE_FIELDS_MAX 16

struct trace_event {
	enum trace_kind kind;
	unsigned int id;
	struct trace_field fields[TRACE_FIELDS_MAX];
};

/* Read a format file's text. 0, or -1: a field is missing, its name in *missing. */
int trace_read_format(struct trace_event *event, const char *text, const char **missing);

/*
 * Decode one page of the ring buffer (trace_pipe_raw). `take` is called with each known event. Returns how
 * many events the kernel says were lost before this page, or -1: the page is not as Documentation/trace says.
 */
int64_t trace_read_page(const uint8_t *page, size_t size, const struct trace_event *events, size_t count,
			void (*take)(void *context, const struct trace_record *record), void *context);

#endif
