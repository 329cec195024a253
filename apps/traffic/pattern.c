// SPDX-License-Identifier: Apache-2.0
/* Documented in pattern.h. */
#include "pattern.h"

#include <string.h>

/* A damaged message number must not be read as a jump ahead by millions of messages. */
#define PLAUSIBLE_JUMP 65536

/* Bytes of the first payload that must match: the block's header (8) and as many again. */
#define PATTERN_PROOF (2 * PATTERN_HEADER)

static uint8_t key[PATTERN_HEADER];
static uint8_t filler[PATTERN_BLOCK];
static bool filled;

void pattern_token(uint64_t token)
{
	unsigned int i;

	for (i = 0; i < PATTERN_HEADER; i++)
		key[i] = (uint8_t)(token >> (8 * i));
	for (i = 0; i < PATTERN_BLOCK; i++)
		filler[i] = (uint8_t)i ^ key[i % PATTERN_HEADER];
	filled = true;
}

static const uint8_t *block_filler(void)
{
	if (!filled)
		pattern_token(0);
	return filler;
}

static void header(uint8_t to[PATTERN_HEADER], uint16_t stream, uint64_t message, uint64_t block)
{
	unsigned int i;

	to[0] = (uint8_t)message;
	to[1] = (uint8_t)(message >> 8);
	to[2] = (uint8_t)(message >> 16);
	to[3] = (uint8_t)(message >> 24);
	to[4] = (uint8_t)block;
	to[5] = (uint8_t)(block >> 8);
	to[6] = (uint8_t)stream;
	to[7] = (uint8_t)(stream >> 8);
	for (i = 0; i < PATTERN_HEADER; i++)
		to[i] ^= key[i];
}

uint8_t pattern_byte(uint16_t stream, uint64_t message, uint64_t offset)
{
	uint8_t head[PATTERN_HEADER];
	size_t at = offset % PATTERN_BLOCK;

	if (at >= PATTERN_HEADER)
		return block_filler()[at];
	header(head, stream, message, offset / PATTERN_BLOCK);
	return head[at];
}

/* The whole block that holds `offset`. */
static void block_at(uint8_t block[PATTERN_BLOCK], uint16_t stream, uint64_t message, uint64_t offset)
{
	memcpy(block, block_filler(), PATTERN_BLOCK);
	header(block, stream, message, offset / PATTERN_BLOCK);
}

void pattern_fill(uint8_t *to, size_t len, uint16_t stream, uint64_t message, uint64_t offset)
{
	uint8_t block[PATTERN_BLOCK];
	size_t at, n;

	while (len > 0) {
		at = offset % PATTERN_BLOCK;
		n = PATTERN_BLOCK - at < len ? PATTERN_BLOCK - at : len;
		block_at(block, stream, message, offset);
		memcpy(to, block + at, n);
		to += n;
		offset += n;
		len -= n;
	}
}

size_t pattern_check(const uint8_t *data, size_t len, uint16_t stream, uint64_t message, uint64_t offset,
		     size_t *first)
{
	uint8_t block[PATTERN_BLOCK];
	size_t done, at, n, i, wrong = 0;

	for (done = 0; done < len; done += n) {
		at = (offset + done) % PATTERN_BLOCK;
		n = PATTERN_BLOCK - at < len - done ? PATTERN_BLOCK - at : len - done;
		block_at(block, stream, message, offset + done);
		if (memcmp(data + done, block + at, n) == 0)
			continue;
		for (i = 0; i < n; i++)
			if (data[done + i] != block[at + i] && wrong++ == 0)
				*first = done + i;
	}
	return wrong;
}

void pattern_fill_flow(uint8_t *to, size_t len, uint64_t position)
{
	uint64_t left;
	size_t n;

	while (len > 0) {
		left = PATTERN_MESSAGE_MAX - position % PATTERN_MESSAGE_MAX;
		n = left < len ? (size_t)left : len;
		pattern_fill(to, n, 0, position / PATTERN_MESSAGE_MAX, position % PATTERN_MESSAGE_MAX);
		to += n;
		position += n;
		len -= n;
	}
}

size_t pattern_check_flow(const uint8_t *data, size_t len, uint64_t position, size_t *first)
{
	size_t done, n, bad, at, wrong = 0;
	uint64_t left;

	for (done = 0; done < len; done += n) {
		left = PATTERN_MESSAGE_MAX - (position + done) % PATTERN_MESSAGE_MAX;
		n = left < len - done ? (size_t)left : len - done;
		bad = pattern_check(data + done, n, 0, (position + done) / PATTERN_MESSAGE_MAX,
				    (position + done) % PATTERN_MESSAGE_MAX, &at);
		if (bad && wrong == 0)
			*first = done + at;
		wrong += bad;
	}
	return wrong;
}

/* The number nearest to `expected` that equals `low` in its `bits` low bits. */
static uint64_t unwrap(uint64_t low, unsigned int bits, uint64_t expected)
{
	uint64_t span = UINT64_C(1) << bits;
	uint64_t near = (expected & ~(span - 1)) | low;

	if (near > expected && near - expected > span / 2 && near >= span)
		return near - span;
	if (near < expected && expected - near > span / 2)
		return near + span;
	return near;
}

static uint64_t number_of(const uint8_t *data, size_t len, uint64_t expected)
{
	size_t bytes = len < 4 ? len : 4, i;
	uint64_t low = 0;

	for (i = 0; i < bytes; i++)
		low |= (uint64_t)(data[i] ^ key[i]) << (8 * i);
	return unwrap(low, (unsigned int)(8 * bytes), expected);
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

uint64_t pattern_number(const uint8_t *data, size_t len, uint64_t expected)
{
	uint64_t first, second;

	if (len == 0)
		return expected;
	first = number_of(data, len, expected);
	if (len >= PATTERN_BLOCK + 4) {
		second = number_of(data + PATTERN_BLOCK, 4, expected);
		if (second != first && distance(second, expected) < distance(first, expected))
			first = second;
	}
	return distance(first, expected) <= PLAUSIBLE_JUMP ? first : expected;
}

bool pattern_ours(const uint8_t *data, size_t len, uint16_t stream, uint64_t number)
{
	size_t first;

	len = len < PATTERN_PROOF ? len : PATTERN_PROOF;
	return pattern_check(data, len, stream, number, 0, &first) == 0;
}
