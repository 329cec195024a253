/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory: measures whether a guest ran short of memory, and writes the record `memory`. A cell in which the
 * kernel reclaimed memory is INVALID (orchestrator/netwarp/sandbox/cell_verdict.py). Outside a guest
 * memory_begin() and memory_record() do nothing.
 *
 * hostfs writes each page to the host at once and keeps a copy in the guest's page cache. When the copies
 * fill the memory, the kernel reclaims some of them. Which pages it takes depends on everything else in the
 * cache, directory names included, and reclaiming reads the clock: two runs of the same cell then differ
 * (docs/decisions/0007-guest-memory.md). So cell-init drops the pages of all files that it and the programs
 * write (files_drop_pages()), and this module checks that this was enough.
 */
#ifndef NETWARP_MEMORY_H
#define NETWARP_MEMORY_H

#include "cell.h"

/* Call at `ready`: from here on it counts how often the kernel's reclaiming thread kswapd0 ran. */
void memory_begin(const struct cell *cell);
/* Read /proc/meminfo; keep the largest page cache and the least free memory so far. */
void memory_look(void);
/*
 * Write the record, once, at the end; nothing unless `ready` was reached. Returns 0, or -1 with the cell's
 * reason set.
 */
int memory_record(struct cell *cell);

#endif
