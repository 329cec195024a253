/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_buffer: decodes pages of the kernel's trace ring buffer into records of fixed size, for two
 * tracepoints: sctp:sctp_probe_path (each path of an association, at every SACK that it receives) and
 * tcp:tcp_probe (at every segment that an established connection receives).
 *
 * A record shows the state before the kernel processes that packet. No system call; tested on the host.
 */
#ifndef NETWARP_TRACE_BUFFER_H
#define NETWARP_TRACE_BUFFER_H

#include <stddef.h>
#include <stdint.h>

enum trace_kind {
	TRACE_SCTP_PATH = 1,
	TRACE_TCP = 2,
};

/*
 * One event: 64 bytes, little endian, written as they are to apps/trace.bin. A field that the event does
 * not have is 0. measure/kernel_samples.py reads this layout: change both and docs/formats.md together.
 */
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

/* Offset and size in bytes of a field in an event, as the tracepoint's format file gives them. */
struct trace_field {
	size_t offset, size;
};

#define TRACE_FIELDS_MAX 16

struct trace_event {
	enum trace_kind kind;
	unsigned int id;
	struct trace_field fields[TRACE_FIELDS_MAX];
};

/*
 * Read the text of a format file (tracefs events/.../format) into *event, whose .kind is set. 0, or -1 with
 * the name of a missing field in *missing.
 */
int trace_read_format(struct trace_event *event, const char *text, const char **missing);

/*
 * Decode one page of the ring buffer, as read from trace_pipe_raw. `take` is called for each event whose id
 * is in `events`; others are skipped. Returns the number of events that the kernel reports as lost before
 * this page, or -1 when the page does not have the layout of kernel/trace/ring_buffer.c.
 */
int64_t trace_read_page(const uint8_t *page, size_t size, const struct trace_event *events, size_t count,
			void (*take)(void *context, const struct trace_record *record), void *context);

#endif
