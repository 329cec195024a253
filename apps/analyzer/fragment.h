/*
 * IP datagrams put together from their fragments, as the receiving host does: what is never whole never
 * reaches a transport. Bounded: FRAGMENT_SLOTS datagrams at a time, of at most FRAGMENT_PIECES fragments,
 * each for FRAGMENT_LIFE_NS. Of truncated fragments the datagram is known as far as its bytes are there
 * without a hole.
 */
#ifndef ANALYZER_FRAGMENT_H
#define ANALYZER_FRAGMENT_H

#include "packet.h"

enum { FRAGMENT_SLOTS = 64, FRAGMENT_PIECES = 128, DATAGRAM_MAX = 65535 };

struct piece {
	uint32_t offset, length, captured;
	uint32_t number; /* of its record */
};

struct datagram {
	struct address from, to;
	int64_t first_ns;
	uint64_t age; /* order in which slots were taken; 0: free */
	uint8_t *bytes;
	uint32_t id;
	uint32_t count;	       /* pieces */
	uint32_t there, total; /* bytes in the pieces; of all (0: the last one is missing) */
	uint32_t ip_bytes, frame_bytes;
	uint16_t source;
	uint8_t kind, protocol, next; /* next: the protocol of the data, by the first fragment */
	struct piece pieces[FRAGMENT_PIECES];
};

struct fragments {
	struct datagram *slots;
	uint64_t ages;
};

/*
 * Adds the fragment `p`. When that makes its datagram whole: the datagram (valid until the next call), and
 * p's data, captured and length are the whole one's. NULL: not whole yet, or never; *failed: no memory.
 */
const struct datagram *fragments_add(struct fragments *s, struct packet *p, bool *failed);
void fragments_free(struct fragments *s);

#endif
