/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counters: keeps what a kernel with gcov counted of its own lines, and what it still holds when all programs
 * have ended, in `counters.bin` (docs/formats.md). With any other kernel nothing is done. It comes
 * after all else: the packets and records of a cell are not touched.
 */
#ifndef NETWARP_COUNTERS_H
#define NETWARP_COUNTERS_H

#include <stdint.h>

/*
 * For a guest's first program, when every other has ended and all is recorded. Waits until the kernel has no
 * association and no TCP socket left, which takes virtual time, but no longer than `limit_ns`. The cell has
 * ended by then: what fails is said on stderr alone, and the file is not there, or cut short.
 */
void counters_keep(int64_t limit_ns);

#endif
