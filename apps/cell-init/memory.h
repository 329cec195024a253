/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory: keeps files that a cell writes out of its guest's memory, and records whether the memory ran short.
 *
 * hostfs writes through to the host at once, and keeps a copy of each page. Once such copies fill the memory
 * the kernel reclaims some; how it goes about that follows what else is cached, the names of directories
 * among it, and it reads the clock: equal cells then differ (docs/decisions/0007-guest-memory.md).
 */
#ifndef NETWARP_MEMORY_H
#define NETWARP_MEMORY_H

#include <fcntl.h>

struct cell;
struct process;

/* Drop the pages of a file from the guest's page cache. For hostfs alone: they are on the host already. */
static inline void memory_forget(int fd)
{
	/* where it is refused the pages stay, and the record says what came of it */
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}

/* Open the files (NULL: none) that a program writes to, so that memory_mark() reaches them. */
void memory_hold(struct process *process, const char *const *outputs);
void memory_release(struct process *process);
/* Called at each progress mark: now and then drops what the programs have written. */
void memory_mark(struct cell *cell);

/* At `ready`: from here on it counts how often the kernel began to reclaim memory. */
void memory_begin(struct cell *cell);
/* The record `memory`. Returns 0, or -1 with the cell's reason set. */
int memory_record(struct cell *cell);

#endif
