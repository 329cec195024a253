/* The transport's checksum. */
#ifndef ANALYZER_CHECKSUM_H
#define ANALYZER_CHECKSUM_H

#include "packet.h"

/* TCP's checksum or SCTP's CRC32c: false = wrong. A packet not captured whole is taken for right. */
bool packet_checksum_right(const struct packet *p);

#endif
