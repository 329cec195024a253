/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pattern: the payload of a flow. Every byte is a function of (stream, message number, offset in the
 *message), so a receiver can check each one. Nearly all bytes repeat every 256 bytes, so captures compress
 *well.
 *
 * A message is cut into blocks of 256 bytes:
 *
 *	0..3	message number in its stream, low 32 bits, least significant byte first
 *	4..5	number of the block in the message, low 16 bits, least significant byte first
 *	6..7	stream, least significant byte first
 *	8..255	the position in the block
 *
 * All of it is then XORed with the token of the run (pattern_token()): byte i of the block with byte i mod 8
 *of the token, least significant byte first. Token 0 changes nothing.
 *
 * A message shorter than 8 bytes is the beginning of this: one byte still distinguishes 256 messages. A byte
 * stream (TCP, MPTCP) is stream 0 and is cut into "messages" of 16 MiB, so that number and block together
 * count the 256-byte blocks from the start of the flow.
 */
#ifndef NETWARP_PATTERN_H
#define NETWARP_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PATTERN_BLOCK	    256
#define PATTERN_HEADER	    8
#define PATTERN_MESSAGE_MAX (UINT64_C(1) << 24) /* 65536 blocks */

/*
 * Set the token of the run for all later calls. Payload with another token is wrong from its first byte on,
 * so a receiver recognises a sender of another run.
 */
void pattern_token(uint64_t token);

/* The byte at `offset` of a message. */
uint8_t pattern_byte(uint16_t stream, uint64_t message, uint64_t offset);

/* Write bytes [offset, offset + len) of a message to `to`. */
void pattern_fill(uint8_t *to, size_t len, uint16_t stream, uint64_t message, uint64_t offset);
/*
 * Count the bytes that differ from the pattern; *first is the index of the first such byte (unchanged if
 * none).
 */
size_t pattern_check(const uint8_t *data, size_t len, uint16_t stream, uint64_t message, uint64_t offset,
		     size_t *first);

/* The same for bytes [position, position + len) of a byte stream. */
void pattern_fill_flow(uint8_t *to, size_t len, uint64_t position);
size_t pattern_check_flow(const uint8_t *data, size_t len, uint64_t position, size_t *first);

/*
 * The number of the message that begins with `data`. A message holds only the low bytes of its number; the
 * result is the number with these low bytes that is nearest to `expected`, the next number of the stream.
 * If the first two blocks hold different numbers the message is damaged: the nearer of the two counts. A
 * number implausibly far from `expected` is replaced by `expected`.
 */
uint64_t pattern_number(const uint8_t *data, size_t len, uint64_t expected);

/*
 * Whether the first payload of a flow, of message `number`, has this run's token. Only its first 16 bytes
 * are compared.
 */
bool pattern_ours(const uint8_t *data, size_t len, uint16_t stream, uint64_t number);

#endif
