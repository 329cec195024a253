/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory: records whether a guest's memory ran short: the record `memory`.
 *
 * hostfs writes through to the host at once, and keeps a copy of each page. Once such copies fill the memory
 * the kernel reclaims some; which ones depends on what else is cached, the names of directories among it, and
 * it reads the clock: equal cells then differ (docs/decisions/0007-guest-memory.md). So cell-init drops the
 * pages of what it and the programs write (files_drop_pages()), and this module watches.
 */
#ifndef NETWARP_MEMORY_H
#define NETWARP_MEMORY_H

#include "cell.h"

/* At `ready`: from here on it counts how often the kernel began to reclaim memory. */
void memory_begin(const struct cell *cell);
/* Keep the largest page cache and the least free memory so far. */
void memory_look(void);
/* The record. Returns 0, or -1 with the cell's reason set. */
int memory_record(struct cell *cell);

#endif
