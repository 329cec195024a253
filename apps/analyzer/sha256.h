/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 (FIPS 180-4) of eight bytes: MPTCP's keys (RFC 8684 3.2). */
#ifndef ANALYZER_SHA256_H
#define ANALYZER_SHA256_H

#include <stdint.h>

/* The last 64 bits of the hash of a key: the initial data sequence number of its host. */
uint64_t sha256_last64(uint64_t key);

#endif
