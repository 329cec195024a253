// SPDX-License-Identifier: Apache-2.0
/* Documented in unpack.h. */
#include <bzlib.h>
#include <lz4frame.h>
#include <lzma.h>
#include <stdlib.h>
#include <string.h>

#include "unpack.h"

/* xz -9 takes 65 MiB; a header that asks for more than zstd may take here is not believed */
static const uint64_t XZ_MEMORY = 128 << 20;

struct bzip2 {
	bz_stream stream;
	bool begun; /* inside a stream */
};

struct lz4 {
	LZ4F_dctx *context;
	bool begun;
};

enum stream_kind unpack_recognise(const uint8_t *bytes)
{
	static const uint8_t xz[] = {0xfd, '7', 'z', 'X', 'Z', 0}, lz4[] = {0x04, 0x22, 0x4d, 0x18};

	if (!memcmp(bytes, xz, sizeof(xz)))
		return STREAM_XZ;
	if (!memcmp(bytes, "BZh", 3))
		return STREAM_BZIP2;
	if (!memcmp(bytes, lz4, sizeof(lz4)))
		return STREAM_LZ4;
	return STREAM_PLAIN;
}

static void *xz_new(void)
{
	lzma_stream *stream = calloc(1, sizeof(*stream));

	if (stream && lzma_stream_decoder(stream, XZ_MEMORY, LZMA_CONCATENATED) != LZMA_OK) {
		free(stream);
		stream = NULL;
	}
	return stream;
}

static void *lz4_new(void)
{
	struct lz4 *l = calloc(1, sizeof(*l));

	if (l && LZ4F_isError(LZ4F_createDecompressionContext(&l->context, LZ4F_VERSION))) {
		free(l);
		l = NULL;
	}
	return l;
}

void *unpack_new(enum stream_kind kind)
{
	switch (kind) {
	case STREAM_XZ:
		return xz_new();
	case STREAM_BZIP2:
		return calloc(1, sizeof(struct bzip2));
	case STREAM_LZ4:
		return lz4_new();
	default:
		return NULL;
	}
}

static enum unpack_result xz_step(lzma_stream *stream, struct unpack_step *step)
{
	lzma_ret result;

	stream->next_in = step->in;
	stream->avail_in = step->in_bytes;
	stream->next_out = step->out;
	stream->avail_out = step->room;
	result = lzma_code(stream, step->in_bytes ? LZMA_RUN : LZMA_FINISH);
	step->used = step->in_bytes - stream->avail_in;
	step->made = step->room - stream->avail_out;
	if (result == LZMA_STREAM_END)
		return UNPACK_END;
	return result == LZMA_OK || result == LZMA_BUF_ERROR ? UNPACK_MORE : UNPACK_DAMAGED;
}

static enum unpack_result bzip2_step(struct bzip2 *b, struct unpack_step *step)
{
	bz_stream *stream = &b->stream;
	int result;

	if (!b->begun) {
		if (!step->in_bytes)
			return UNPACK_END;
		if (BZ2_bzDecompressInit(stream, 0, 0) != BZ_OK)
			return UNPACK_DAMAGED;
		b->begun = true;
	}
	stream->next_in = (char *)(uintptr_t)step->in; /* bzip2 knows no const */
	stream->avail_in = (unsigned int)step->in_bytes;
	stream->next_out = (char *)step->out;
	stream->avail_out = step->room > UINT32_MAX ? UINT32_MAX : (unsigned int)step->room;
	step->made = stream->avail_out;
	result = BZ2_bzDecompress(stream);
	step->used = step->in_bytes - stream->avail_in;
	step->made -= stream->avail_out;
	if (result != BZ_STREAM_END)
		return result == BZ_OK ? UNPACK_MORE : UNPACK_DAMAGED;
	(void)BZ2_bzDecompressEnd(stream);
	*b = (struct bzip2){0};
	return UNPACK_END;
}

static enum unpack_result lz4_step(struct lz4 *l, struct unpack_step *step)
{
	size_t hint;

	if (!l->begun && !step->in_bytes)
		return UNPACK_END;
	step->made = step->room;
	step->used = step->in_bytes;
	hint = LZ4F_decompress(l->context, step->out, &step->made, step->in, &step->used, NULL);
	if (LZ4F_isError(hint))
		return UNPACK_DAMAGED;
	l->begun = hint != 0;
	return l->begun ? UNPACK_MORE : UNPACK_END;
}

enum unpack_result unpack_step(enum stream_kind kind, void *unpacker, struct unpack_step *step)
{
	step->used = step->made = 0;
	switch (kind) {
	case STREAM_XZ:
		return xz_step(unpacker, step);
	case STREAM_BZIP2:
		return bzip2_step(unpacker, step);
	case STREAM_LZ4:
		return lz4_step(unpacker, step);
	default:
		return UNPACK_DAMAGED;
	}
}

void unpack_free(enum stream_kind kind, void *unpacker)
{
	if (!unpacker)
		return;
	if (kind == STREAM_XZ)
		lzma_end(unpacker);
	if (kind == STREAM_BZIP2 && ((struct bzip2 *)unpacker)->begun)
		(void)BZ2_bzDecompressEnd(&((struct bzip2 *)unpacker)->stream);
	if (kind == STREAM_LZ4)
		(void)LZ4F_freeDecompressionContext(((struct lz4 *)unpacker)->context);
	free(unpacker);
}
