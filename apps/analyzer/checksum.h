/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the checksums of a packet. */
#ifndef ANALYZER_CHECKSUM_H
#define ANALYZER_CHECKSUM_H

#include "packet.h"

/*
 * Whether TCP's or UDP's checksum or SCTP's CRC32c is right, and that of the IPv4 header. A packet that was
 * not captured whole counts as right; `unfinished`: also one whose checksum is the sum of its pseudo header,
 * which a kernel leaves there for the network card to finish.
 */
bool packet_checksum_right(const struct packet *p, bool unfinished);

#endif
