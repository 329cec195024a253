/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a capture file: plain or compressed, from a descriptor or from memory (fuzzing). */
#ifndef ANALYZER_STREAM_H
#define ANALYZER_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unpack.h"

/* A capture in memory, in place of a descriptor. */
struct memory_file {
	const uint8_t *data;
	size_t bytes;
	size_t at_once; /* bytes returned per read, at most, as from a pipe; 0: any number */
};

struct stream {
	uint8_t *buffer; /* bytes [begin, end) are unpacked and not yet taken */
	size_t begin, end, capacity;
	uint64_t taken;	     /* bytes taken so far */
	uint64_t most;	     /* bytes that are unpacked, at most; 0: any number */
	bool at_end;	     /* nothing more will come */
	const char *trouble; /* why it ended early; NULL: it did not */
	enum stream_kind kind;
	int fd;
	int stop_fd; /* when it is readable, reading stops; -1: none */
	int64_t
	    until_ns; /* after stop_fd: what arrives until then (CLOCK_MONOTONIC) is read; 0: not stopped */
	struct memory_file memory; /* the rest of it; it is read instead of fd when .data is not NULL */
	uint8_t *packed;	   /* bytes read and not yet unpacked */
	size_t packed_begin, packed_end;
	void *unpacker;
	bool unpacker_full; /* zstd: its last output filled the buffer, so it may have more without new input
			     */
	bool unpacker_done; /* the unpacker is between two frames: an end here is a clean end */
};

/*
 * Open a stream; stream_close() closes `fd` but not `stop_fd`. `memory`, unless NULL, is read instead of
 * `fd`. false: no memory.
 */
bool stream_open(struct stream *s, int fd, int stop_fd, const struct memory_file *memory);
void stream_close(struct stream *s);
enum {
	STREAM_BLOCK = 64 * 1024
}; /* bytes per read: a block and the unpacker's tables fit the second-level cache */
/* Read until the buffer holds at least `bytes` bytes. false: the stream ends before. */
bool stream_fill(struct stream *s, size_t bytes);

/*
 * The next `bytes` bytes, contiguous, valid until the next call; NULL when fewer are left. Does not consume
 * them: stream_take() does.
 */
static inline const uint8_t *stream_peek(struct stream *s, size_t bytes)
{
	if (s->end - s->begin < bytes && !stream_fill(s, bytes))
		return NULL;
	return s->buffer + s->begin;
}

static inline void stream_take(struct stream *s, size_t bytes)
{
	s->begin += bytes;
	s->taken += bytes;
}

static inline size_t stream_left(const struct stream *s)
{
	return s->end - s->begin;
}

#endif
