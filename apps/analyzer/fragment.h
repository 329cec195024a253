/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reassembles IP datagrams from their fragments, as the receiving host does: a datagram that never becomes
 * complete does not reach a transport. At most FRAGMENT_SLOTS datagrams are kept at a time, each of at most
 * FRAGMENT_PIECES fragments and for FRAGMENT_LIFE_NS (30 s, Linux' ipfrag_time). If fragments were
 * truncated by the capture, the datagram is known up to the first missing byte.
 */
#ifndef ANALYZER_FRAGMENT_H
#define ANALYZER_FRAGMENT_H

#include "packet.h"

enum { FRAGMENT_SLOTS = 64, FRAGMENT_PIECES = 128, DATAGRAM_MAX = 65535 };

struct piece {
	uint32_t offset, length, captured;
	uint32_t number; /* of its record in the merged capture */
};

struct datagram {
	struct address from, to;
	int64_t first_ns;
	uint64_t age; /* order in which slots were taken, for replacing the oldest; 0: free */
	uint8_t *bytes;
	uint32_t id;
	uint32_t count; /* pieces */
	uint32_t there,
	    total; /* bytes in the pieces; bytes of the datagram (0: its last fragment is missing) */
	uint32_t ip_bytes, frame_bytes;
	uint16_t source;
	uint8_t kind, protocol, next; /* next: protocol of the data, as the first fragment says */
	struct piece pieces[FRAGMENT_PIECES];
};

struct fragments {
	struct datagram *slots;
	uint64_t ages;
};

/*
 * Add the fragment `p`. If this completes its datagram, return the datagram (valid until the next call) and
 * set .data, .captured and .length of `p` to those of the datagram. NULL: not complete; *failed is set
 * without memory.
 */
const struct datagram *fragments_add(struct fragments *s, struct packet *p, bool *failed);
void fragments_free(struct fragments *s);

#endif
