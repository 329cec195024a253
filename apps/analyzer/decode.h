/* From a record to a packet: the headers up to the transport's. */
#ifndef ANALYZER_DECODE_H
#define ANALYZER_DECODE_H

#include "packet.h"

/*
 * Fills `p` from `r` (source and number are set by the caller). Returns whether `data` is a whole transport
 * packet to look into. A fragment's data are its part of the datagram; `length` 0: not even its header was
 * there.
 */
bool packet_decode(struct packet *p, const struct record *r);
/* The same for a datagram put together from fragments: p's data, captured, length and protocol are the whole
 * one's. */
bool packet_decode_datagram(struct packet *p);

#endif
