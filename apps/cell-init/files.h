/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files: reads and writes whole small files, makes directories, drops cached pages. On failure each
 * function returns -1 with errno set.
 */
#ifndef NETWARP_FILES_H
#define NETWARP_FILES_H

#include <fcntl.h>
#include <stddef.h>
#include <sys/types.h>

/* Make the directories above `path` that do not exist, with mode 0755. Returns 0. */
int files_make_parents(const char *path);
/*
 * Read at most size - 1 bytes into `text` and append a NUL byte, also after a failure. Returns the number
 * of bytes. A longer file is cut without an error.
 */
ssize_t files_read(const char *path, char *text, size_t size);
/*
 * Write the text in one write(2), as files of /proc, /sys and tracefs require. `flags` are added to
 * O_WRONLY for open(2). Returns the number of bytes written.
 */
ssize_t files_write(const char *path, const char *text, int flags);

/*
 * Drop the pages of a file from the guest's page cache (why: memory.h). Only for files of hostfs: it writes
 * each page to the host at once, so no data can be lost.
 */
static inline void files_drop_pages(int fd)
{
	/* when the kernel refuses, the pages stay, and the record `memory` shows the larger page cache */
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}

#endif
