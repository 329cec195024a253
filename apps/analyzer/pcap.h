/* SPDX-License-Identifier: Apache-2.0 */
/* Reads records of libpcap's savefile format in both byte orders. */
#ifndef ANALYZER_PCAP_H
#define ANALYZER_PCAP_H

#include "capture_file.h"

/* Whether the first 4 bytes of a file are this format's. */
bool pcap_recognised(const uint8_t *header);
/* Read the file header, whose 24 bytes the caller has made sure of. false: see .trouble. */
bool pcap_start(struct capture_file *p);
/* Read the next whole record. false: the end. */
bool pcap_next(struct capture_file *p, struct record *r);

#endif
