/* Unpacking xz, bzip2 and lz4, a step at a time; streams put together (as by pbzip2) are one. */
#ifndef ANALYZER_UNPACK_H
#define ANALYZER_UNPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum stream_kind { STREAM_PLAIN, STREAM_GZIP, STREAM_ZSTD, STREAM_XZ, STREAM_BZIP2, STREAM_LZ4 };

enum unpack_result {
	UNPACK_MORE,
	UNPACK_END, /* between two of its streams: an end here is a clean end */
	UNPACK_DAMAGED
};

struct unpack_step {
	const uint8_t *in;
	size_t in_bytes; /* 0: nothing more will come */
	uint8_t *out;
	size_t room;
	size_t used, made; /* set: of in, of out */
};

/* The kind whose magic number begins these bytes (6 at least); STREAM_PLAIN: none of them. */
enum stream_kind unpack_recognise(const uint8_t *bytes);
/* NULL: no memory. */
void *unpack_new(enum stream_kind kind);
enum unpack_result unpack_step(enum stream_kind kind, void *unpacker, struct unpack_step *step);
void unpack_free(enum stream_kind kind, void *unpacker);

#endif
