/* The part of the analyser's interface that only its tests and the fuzzer use. */
#ifndef ANALYZER_ANALYZER_H
#define ANALYZER_ANALYZER_H

#include "reader.h"

/* As nwa_open, of captures in memory (which must outlive the handle): for fuzzing and tests. */
struct nwa *nwa_open_memory(const struct memory_file *files, uint32_t count, uint32_t wanted,
			    uint32_t options);

#endif
