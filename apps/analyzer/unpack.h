/* SPDX-License-Identifier: Apache-2.0 */
/* Unpacks xz, bzip2 and lz4 step by step. Concatenated streams, as pbzip2 writes them, are read as one. */
#ifndef ANALYZER_UNPACK_H
#define ANALYZER_UNPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum stream_kind { STREAM_PLAIN, STREAM_GZIP, STREAM_ZSTD, STREAM_XZ, STREAM_BZIP2, STREAM_LZ4 };

enum unpack_result {
	UNPACK_MORE,
	UNPACK_END, /* between two compressed streams: an end of the input here is a clean end */
	UNPACK_DAMAGED
};

struct unpack_step {
	const uint8_t *in;
	size_t in_bytes; /* 0: the end of the input */
	uint8_t *out;
	size_t room;
	size_t used, made; /* set by unpack_step(): bytes consumed of .in, bytes written to .out */
};

/*
 * The kind of compression, by the magic number in the first 6 bytes of a file; STREAM_PLAIN: none of these.
 */
enum stream_kind unpack_recognise(const uint8_t *bytes);
/* A decompressor of that kind; NULL: no memory. */
void *unpack_new(enum stream_kind kind);
enum unpack_result unpack_step(enum stream_kind kind, void *unpacker, struct unpack_step *step);
void unpack_free(enum stream_kind kind, void *unpacker);

#endif
