/* SPDX-License-Identifier: Apache-2.0 */
/* A cursor in a packet: the part that has not been parsed yet. */
#ifndef ANALYZER_CURSOR_H
#define ANALYZER_CURSOR_H

#include <stdbool.h>
#include <stdint.h>

struct cursor {
	const uint8_t *at;
	/* bytes left in the capture, and on the wire; skip() relies on captured <= length */
	uint32_t captured, length;
};

/* Moves behind a header of `bytes` bytes. false: it was not captured whole; the cursor stays. */
static inline bool skip(struct cursor *c, uint32_t bytes)
{
	if (c->captured < bytes)
		return false;
	c->at += bytes;
	c->captured -= bytes;
	c->length -= bytes;
	return true;
}

#endif
