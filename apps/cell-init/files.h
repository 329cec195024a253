/* SPDX-License-Identifier: Apache-2.0 */
/* files: small files, whole, and the directories and cached pages of files. Each returns -1 with errno set.
 */
#ifndef NETWARP_FILES_H
#define NETWARP_FILES_H

#include <fcntl.h>
#include <stddef.h>
#include <sys/types.h>

/* Make the directories above `path`. Returns 0. */
int files_make_parents(const char *path);
/* The file's first bytes, at most size - 1, and a NUL byte (also after a failure). Returns how many. */
ssize_t files_read(const char *path, char *text, size_t size);
/* Write the text in one write(2), as files of /proc, /sys and tracefs need it; `flags` as for open(2). */
ssize_t files_write(const char *path, const char *text, int flags);

/* Drop the pages of a file from the guest's page cache. Only for hostfs, which has written them through. */
static inline void files_drop_pages(int fd)
{
	/* where it is refused the pages stay, and the record `memory` shows it */
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}

#endif
