/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pattern: the payload. Every byte follows from (stream, message number, offset in the message), so a
 * receiver can check each one; nearly all bytes repeat every 256, so captures compress well.
 *
 * A message is cut into blocks of 256 bytes:
 *
 *	0..3	message number in its stream, low 32 bits, least significant byte first
 *	4..5	number of the block in the message, low 16 bits, least significant byte first
 *	6..7	stream, least significant byte first
 *	8..255	the position in the block
 *
 * and over all of it the token of the run (pattern_token()): byte i of the block is XORed with byte i mod 8
 * of the token, least significant byte first. Token 0 changes nothing.
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

/* Whose payload it is, from now on. What was made with another token is wrong from its first bytes. */
void pattern_token(uint64_t token);

uint8_t pattern_byte(uint16_t stream, uint64_t message, uint64_t offset);

/* Bytes [offset, offset + len) of a message. */
void pattern_fill(uint8_t *to, size_t len, uint16_t stream, uint64_t message, uint64_t offset);
/* How many of these bytes differ from the pattern; *first is the index of the first one. */
size_t pattern_check(const uint8_t *data, size_t len, uint16_t stream, uint64_t message, uint64_t offset,
		     size_t *first);

/* The same for bytes [position, position + len) of a byte stream. */
void pattern_fill_flow(uint8_t *to, size_t len, uint64_t position);
size_t pattern_check_flow(const uint8_t *data, size_t len, uint64_t position, size_t *first);

/*
 * The number of the message that begins with `data`, when `expected` is the next one: the number nearest to
 * `expected` whose low bytes are those that the message holds. A message of two blocks or more whose blocks
 * disagree is damaged: then `expected`, or the number of the second block if that is nearer.
 */
uint64_t pattern_number(const uint8_t *data, size_t len, uint64_t expected);

/* Whether this, the first payload of a flow (message `number`), can be of this token: as far as its first 16
 * bytes determine. */
bool pattern_ours(const uint8_t *data, size_t len, uint16_t stream, uint64_t number);

#endif
