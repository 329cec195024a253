// SPDX-License-Identifier: Apache-2.0
/* Documented in files.h. */
#include "files.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int files_make_parents(const char *path)
{
	char part[4096];
	char *slash;

	if (strlen(path) >= sizeof(part)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	strcpy(part, path);
	for (slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(part, 0755) && errno != EEXIST)
			return -1;
		*slash = '/';
	}
	return 0;
}

ssize_t files_read(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t n = -1;

	text[0] = '\0';
	if (fd < 0)
		return -1;
	while (len < size - 1 && (n = read(fd, text + len, size - 1 - len)) > 0)
		len += (size_t)n;
	close(fd);
	text[len] = '\0';
	return n < 0 ? -1 : (ssize_t)len;
}

ssize_t files_write(const char *path, const char *text, int flags)
{
	int fd = open(path, flags | O_WRONLY | O_CLOEXEC, 0644);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = write(fd, text, strlen(text));
	close(fd);
	return n;
}
