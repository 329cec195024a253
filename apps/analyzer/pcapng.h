/* SPDX-License-Identifier: Apache-2.0 */
/* Reads records of pcapng files in both byte orders, with any resolution of time stamps. */
#ifndef ANALYZER_PCAPNG_H
#define ANALYZER_PCAPNG_H

#include "capture_file.h"

/* Whether the first 4 bytes of a file are this format's. */
bool pcapng_recognised(const uint8_t *header);
/* Read the first section header. false: see .trouble. */
bool pcapng_start(struct capture_file *p);
/* Read the next whole record, and the blocks before it. false: the end. */
bool pcapng_next(struct capture_file *p, struct record *r);

#endif
