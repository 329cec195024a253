// SPDX-License-Identifier: Apache-2.0
/*
 * Reading and unpacking. read(2) and not mmap(2): a file that shrinks while it is read must not kill the
 * process, and a block that fits the cache is as fast. Concatenated gzip members and zstd frames are one
 * stream; xz, bzip2 and lz4: unpack.c.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "stream.h"
#include "unpack.h"

static const int64_t SECOND_NS = 1000000000, STOP_NS = 1000000000;
enum {
	MAGIC = 6,
	WINDOW_LOG_MAX = 27,
};

/*
 * Waits for bytes, or for the word to stop. Who writes into the pipe (tcpdump) was probably told to stop as
 * well and sends the rest of its buffer: for a second that is taken. false: stopped.
 */
static bool wait_for_bytes(struct stream *s)
{
	struct pollfd files[2] = {{.fd = s->fd, .events = POLLIN}, {.fd = s->stop_fd, .events = POLLIN}};
	struct timespec now;
	int64_t left_ns;

	while (!s->until_ns) {
		if (poll(files, 2, -1) < 0)
			continue; /* a signal: its handler writes to stop_fd */
		if (!files[1].revents)
			return true;
		(void)clock_gettime(CLOCK_MONOTONIC, &now);
		s->until_ns = now.tv_sec * SECOND_NS + now.tv_nsec + STOP_NS;
	}
	for (;;) {
		(void)clock_gettime(CLOCK_MONOTONIC, &now);
		left_ns = s->until_ns - (now.tv_sec * SECOND_NS + now.tv_nsec);
		if (left_ns <= 0)
			return false;
		if (poll(files, 1, (int)(left_ns / 1000000) + 1) > 0)
			return true;
	}
}

static size_t read_raw(struct stream *s, uint8_t *to, size_t room)
{
	size_t some;
	ssize_t got;

	if (s->memory.data) {
		some = s->memory.bytes < room ? s->memory.bytes : room;
		if (s->memory.at_once && some > s->memory.at_once)
			some = s->memory.at_once;
		memcpy(to, s->memory.data, some);
		s->memory.data += some;
		s->memory.bytes -= some;
		return some;
	}
	if (s->stop_fd >= 0 && !wait_for_bytes(s)) {
		s->trouble = "reading was stopped";
		return 0;
	}
	do
		got = read(s->fd, to, room);
	while (got < 0 && errno == EINTR);
	if (got < 0) {
		s->trouble = strerror(errno);
		got = 0;
	}
	return (size_t)got;
}

static bool refill_packed(struct stream *s)
{
	if (s->packed_begin < s->packed_end)
		return true;
	s->packed_begin = 0;
	s->packed_end = read_raw(s, s->packed, STREAM_BLOCK);
	return s->packed_end > 0;
}

static size_t unpack_gzip(struct stream *s, uint8_t *to, size_t room)
{
	z_stream *z = s->unpacker;
	size_t made = 0;

	while (!made) {
		int status;

		if (!refill_packed(s)) {
			if (!s->unpacker_done && !s->trouble)
				s->trouble = "the gzip data end in the middle";
			return 0;
		}
		z->next_in = s->packed + s->packed_begin;
		z->avail_in = (uInt)(s->packed_end - s->packed_begin);
		z->next_out = to;
		z->avail_out = room > STREAM_BLOCK ? STREAM_BLOCK : (uInt)room;
		made = z->avail_out;
		status = inflate(z, Z_NO_FLUSH);
		made -= z->avail_out;
		s->packed_begin = s->packed_end - z->avail_in;
		s->unpacker_done = status == Z_STREAM_END;
		if (status == Z_STREAM_END && inflateReset(z) == Z_OK)
			continue;
		if (status != Z_OK && status != Z_BUF_ERROR) {
			s->trouble = "the gzip data are damaged";
			s->packed_begin = s->packed_end = 0;
			s->at_end = true;
			return made;
		}
	}
	return made;
}

static size_t unpack_zstd(struct stream *s, uint8_t *to, size_t room)
{
	ZSTD_outBuffer out = {.dst = to, .size = room};

	while (!out.pos) {
		ZSTD_inBuffer in;
		size_t status;

		if (!refill_packed(s) && !s->unpacker_full) {
			if (!s->unpacker_done && !s->trouble)
				s->trouble = "the zstd data end in the middle";
			return 0;
		}
		in = (ZSTD_inBuffer){.src = s->packed + s->packed_begin,
				     .size = s->packed_end - s->packed_begin};
		status = ZSTD_decompressStream(s->unpacker, &out, &in);
		s->packed_begin += in.pos;
		s->unpacker_full = out.pos == out.size;
		if (in.size || out.pos) /* with nothing in nor out it already waits for another frame */
			s->unpacker_done = status == 0;
		if (ZSTD_isError(status)) {
			s->trouble = "the zstd data are damaged";
			s->packed_begin = s->packed_end = 0;
			s->at_end = true;
			return out.pos;
		}
	}
	return out.pos;
}

static size_t unpack_other(struct stream *s, uint8_t *to, size_t room)
{
	static const char *const ends[] = {[STREAM_XZ] = "the xz data end in the middle",
					   [STREAM_BZIP2] = "the bzip2 data end in the middle",
					   [STREAM_LZ4] = "the lz4 data end in the middle"};
	static const char *const damaged[] = {[STREAM_XZ] = "the xz data are damaged",
					      [STREAM_BZIP2] = "the bzip2 data are damaged",
					      [STREAM_LZ4] = "the lz4 data are damaged"};

	for (;;) {
		struct unpack_step step = {.out = to, .room = room};
		bool more = refill_packed(s);
		enum unpack_result result;

		step.in = s->packed + s->packed_begin;
		step.in_bytes = s->packed_end - s->packed_begin;
		result = unpack_step(s->kind, s->unpacker, &step);
		s->packed_begin += step.used;
		if (result == UNPACK_DAMAGED || (more && !step.used && !step.made)) {
			s->trouble = damaged[s->kind];
			s->packed_begin = s->packed_end = 0;
			s->at_end = true;
			return step.made;
		}
		if (step.made)
			return step.made;
		if (!more) {
			if (result != UNPACK_END && !s->trouble)
				s->trouble = ends[s->kind];
			return 0;
		}
	}
}

static bool detect(struct stream *s)
{
	static const uint8_t gzip[] = {0x1f, 0x8b}, zstd[] = {0x28, 0xb5, 0x2f, 0xfd};
	z_stream *z;

	if (!stream_fill(s, MAGIC))
		return true; /* too short for anything: the reader above reports it */
	if (!memcmp(s->buffer, gzip, sizeof(gzip))) {
		z = calloc(1, sizeof(*z));
		if (!z)
			return false;
		if (inflateInit2(z, 15 + 16) != Z_OK) {
			free(z);
			return false;
		}
		s->unpacker = z;
		s->kind = STREAM_GZIP;
	} else if (!memcmp(s->buffer, zstd, sizeof(zstd))) {
		s->unpacker = ZSTD_createDStream();
		if (!s->unpacker)
			return false;
		(void)ZSTD_DCtx_setParameter(s->unpacker, ZSTD_d_windowLogMax, WINDOW_LOG_MAX);
		s->kind = STREAM_ZSTD;
	} else {
		enum stream_kind kind = unpack_recognise(s->buffer);

		if (kind == STREAM_PLAIN)
			return true;
		s->unpacker = unpack_new(kind);
		if (!s->unpacker)
			return false;
		s->kind = kind;
	}
	s->packed = s->buffer; /* what was read so far is packed: the buffers change places */
	s->packed_begin = s->begin;
	s->packed_end = s->end;
	s->begin = s->end = 0;
	s->at_end = false;
	s->buffer = malloc(s->capacity);
	return s->buffer != NULL;
}

bool stream_open(struct stream *s, int fd, int stop_fd, const struct memory_file *memory)
{
	*s = (struct stream){.fd = fd, .stop_fd = stop_fd, .capacity = STREAM_BLOCK};
	if (memory)
		s->memory = *memory;
	s->buffer = malloc(s->capacity);
	return s->buffer && detect(s);
}

void stream_close(struct stream *s)
{
	if (s->kind == STREAM_GZIP && s->unpacker)
		(void)inflateEnd(s->unpacker);
	if (s->kind == STREAM_ZSTD)
		(void)ZSTD_freeDStream(s->unpacker);
	else if (s->kind == STREAM_GZIP)
		free(s->unpacker);
	else
		unpack_free(s->kind, s->unpacker);
	free(s->packed);
	free(s->buffer);
	if (s->fd >= 0)
		(void)close(s->fd);
	s->unpacker = s->packed = s->buffer = NULL;
	s->fd = -1;
}

/* A record may claim megabytes that the file does not have: the buffer grows with what has come. */
static bool grow(struct stream *s)
{
	uint8_t *larger = realloc(s->buffer, s->capacity * 2);

	if (!larger) {
		s->trouble = "out of memory";
		s->at_end = true;
		return false;
	}
	s->buffer = larger;
	s->capacity *= 2;
	return true;
}

/* A few kilobytes may hold terabytes. */
static bool holds_too_much(struct stream *s)
{
	if (!s->most || s->kind == STREAM_PLAIN || s->taken + s->end - s->begin < s->most)
		return false;
	s->trouble =
	    "it expands to more bytes than the limit: the rest was not read (netwarp --limit capture-bytes)";
	s->at_end = true;
	return true;
}

bool stream_fill(struct stream *s, size_t bytes)
{
	if (s->begin) {
		memmove(s->buffer, s->buffer + s->begin, s->end - s->begin);
		s->end -= s->begin;
		s->begin = 0;
	}
	while (s->end < bytes && !s->at_end && !holds_too_much(s)) {
		uint8_t *to;
		size_t room, got;

		if (s->end == s->capacity && !grow(s))
			return false;
		to = s->buffer + s->end;
		room = s->capacity - s->end;
		if (s->kind == STREAM_GZIP)
			got = unpack_gzip(s, to, room);
		else if (s->kind == STREAM_ZSTD)
			got = unpack_zstd(s, to, room);
		else if (s->kind != STREAM_PLAIN)
			got = unpack_other(s, to, room);
		else
			got = read_raw(s, to, room);
		s->end += got;
		if (!got)
			s->at_end = true;
	}
	return s->end >= bytes;
}
