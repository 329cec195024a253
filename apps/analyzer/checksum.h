/* Checks the transport checksum of a packet. */
#ifndef ANALYZER_CHECKSUM_H
#define ANALYZER_CHECKSUM_H

#include "packet.h"

/* Whether TCP's checksum or SCTP's CRC32c is right. A packet that was not captured whole counts as right. */
bool packet_checksum_right(const struct packet *p);

#endif
