/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the analyser's interface that is not in the library: only its fuzzer (fuzz.c) uses it. */
#ifndef ANALYZER_ANALYZER_H
#define ANALYZER_ANALYZER_H

#include "reader.h"

/* Like nwa_open(), but reads captures from memory, which must outlive the handle. No filter. */
struct nwa *nwa_open_memory(const struct memory_file *files, uint32_t count, uint32_t wanted,
			    uint32_t options);

#endif
