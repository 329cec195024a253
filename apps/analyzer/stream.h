/* A capture file as a stream of bytes: plain or compressed, from a descriptor or from memory (fuzzing). */
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
	size_t at_once; /* as much is read at a time, as from a pipe; 0: any number */
};

struct stream {
	uint8_t *buffer; /* [begin, end) is read (and unpacked) and not yet taken */
	size_t begin, end, capacity;
	uint64_t taken;	     /* bytes taken so far */
	bool at_end;	     /* nothing more will come */
	const char *trouble; /* why it ended before its end, or NULL */
	enum stream_kind kind;
	int fd;
	int stop_fd;	  /* reading ends when it can be read; -1: none */
	int64_t until_ns; /* ... and what the writer still sends by then is taken along; 0: not yet */
	struct memory_file memory; /* instead of fd, when its data are not NULL: what is left of it */
	uint8_t *packed;	   /* bytes read and not yet unpacked */
	size_t packed_begin, packed_end;
	void *unpacker;
	bool unpacker_full; /* zstd: its last output filled the room, so it may hold more, without more input
			     */
	bool unpacker_done; /* the unpacker stands between two frames: an end here is a clean end */
};

/* Takes `fd` over, but not stop_fd. false: no memory. */
bool stream_open(struct stream *s, int fd, int stop_fd, const struct memory_file *memory);
void stream_close(struct stream *s);
enum { STREAM_BLOCK = 64 * 1024 }; /* read at a time: a block and its tables fit the second-level cache */
/* Makes `bytes` bytes lie in the buffer; false: the stream ends before. */
bool stream_fill(struct stream *s, size_t bytes);

/* `bytes` contiguous bytes, valid until the next peek; NULL where fewer are left. */
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
