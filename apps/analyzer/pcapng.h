/* Records of pcapng files, both byte orders, any resolution. */
#ifndef ANALYZER_PCAPNG_H
#define ANALYZER_PCAPNG_H

#include "capture_file.h"

/* Whether the first 4 bytes of a file are this format's. */
bool pcapng_recognised(const uint8_t *header);
/* Reads the first section's header. false: see .trouble. */
bool pcapng_start(struct capture_file *p);
/* The next whole record; false: the end. */
bool pcapng_next(struct capture_file *p, struct record *r);

#endif
