/* The bytes of a packet that no header has taken yet. */
#ifndef ANALYZER_CURSOR_H
#define ANALYZER_CURSOR_H

#include <stdbool.h>
#include <stdint.h>

struct cursor {
	const uint8_t *at;
	uint32_t captured, length; /* there, and on the wire */
};

/* Takes a header. false: it was not captured whole. */
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
