/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counters: keeps what a kernel with gcov counted of its own lines, and what it still holds when all programs
 * have ended, in `counters.bin` (docs/formats.md). With any other kernel nothing is done. It comes
 * after all else: the packets and records of a cell are not touched.
 */
#ifndef NETWARP_COUNTERS_H
#define NETWARP_COUNTERS_H

#include "cell.h"

/*
 * Called when every program has ended. Waits until the kernel has no association and no TCP socket left,
 * which takes virtual time, but no longer than `limit_ns`. 0, or -1 with the cell's reason set: nothing was
 * kept.
 */
int counters_keep(struct cell *cell, int64_t limit_ns);

#endif
