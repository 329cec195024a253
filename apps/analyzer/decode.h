/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes the headers of a record up to the transport header. */
#ifndef ANALYZER_DECODE_H
#define ANALYZER_DECODE_H

#include "packet.h"

/*
 * Fills `p` from `r`, except .source and .number, which the caller sets. Returns whether .data is a whole
 * transport packet that can be decoded. Of an IP fragment .data is its part of the datagram; .length 0: not
 * even the IP header was captured.
 */
bool packet_decode(struct packet *p, const struct record *r);
/*
 * The same for a reassembled datagram: .data, .captured, .length and .protocol of `p` are those of the
 * datagram.
 */
bool packet_decode_datagram(struct packet *p);

#endif
