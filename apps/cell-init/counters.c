// SPDX-License-Identifier: Apache-2.0
/* Documented in counters.h. */
#include "counters.h"

#include "clock.h"
#include "files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#define DEBUGFS	     "/sys/kernel/debug"
#define GCOV	     DEBUGFS "/gcov"
#define SLABS	     "/sys/kernel/slab"
#define OBJECTS	     "/proc/net/sctp/sctp_dbg_objcnt"
#define SOCKETS	     "/proc/net/sockstat"
#define COUNTERS     "counters.bin"
#define ENTRY_MAX    (4 << 20)
#define LOOK_EVERY_S 1
#define QUIET_S	     10 /* then no packet is on a link any more: its buffers would count as left behind */
#define WALK_FILES   16

static int out_fd = -1;
static char *entry; /* the content of one */
static int error;

/* An entry: its name and length as a line, then its bytes. */
static void put(const char *name, size_t len)
{
	char head[600];
	int n = snprintf(head, sizeof(head), "%s %zu\n", name, len);

	if (!error && (n >= (int)sizeof(head) || write(out_fd, head, (size_t)n) != n ||
		       write(out_fd, entry, len) != (ssize_t)len))
		error = errno ? errno : EIO;
}

static void put_file(const char *name, const char *path)
{
	ssize_t len = files_read(path, entry, ENTRY_MAX);

	if (len >= 0)
		put(name, (size_t)len);
}

/* The number behind ` key ` in a line that begins with `line`; 0 where there is none. */
static long number_behind(const char *text, const char *line, const char *key)
{
	const char *at = strstr(text, line), *found = at ? strstr(at, key) : NULL;

	return found ? strtol(found + strlen(key), NULL, 10) : 0;
}

/* True while an association or a TCP socket (of MPTCP, too) is still closing. */
static bool closing(void)
{
	files_read(OBJECTS, entry, ENTRY_MAX);
	if (number_behind(entry, "assoc:", "assoc:") > 0)
		return true;
	files_read(SOCKETS, entry, ENTRY_MAX);
	return number_behind(entry, "TCP:", " alloc ") > 0;
}

static int64_t await_closing(int64_t limit_ns)
{
	const struct timespec pause = {.tv_sec = LOOK_EVERY_S}, quiet = {.tv_sec = QUIET_S};
	int64_t waited_ns = 0;

	while (closing() && waited_ns < limit_ns) {
		clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
		waited_ns += LOOK_EVERY_S * NS_PER_S;
	}
	clock_nanosleep(CLOCK_MONOTONIC, 0, &quiet, NULL);
	return waited_ns;
}

/* The objects in each slab cache, a line each; caches are shrunk first, or free ones would count. */
static void put_slabs(void)
{
	DIR *caches = opendir(SLABS);
	char path[400], number[200];
	struct dirent *cache;
	size_t len = 0;
	int n;

	while (caches && (cache = readdir(caches))) {
		snprintf(path, sizeof(path), SLABS "/%.255s/shrink", cache->d_name);
		if (cache->d_name[0] == '.' || files_write(path, "1", 0) < 0)
			continue;
		snprintf(path, sizeof(path), SLABS "/%.255s/objects", cache->d_name);
		if (files_read(path, number, sizeof(number)) < 0)
			continue;
		n = snprintf(entry + len, ENTRY_MAX - len, "%s %ld\n", cache->d_name,
			     strtol(number, NULL, 10));
		if (n > 0 && (size_t)n < ENTRY_MAX - len)
			len += (size_t)n;
	}
	if (caches)
		closedir(caches);
	put("slabs", len);
}

static int put_counted(const char *path, const struct stat *stat, int type, struct FTW *place)
{
	size_t len = strlen(path);

	(void)stat;
	(void)place;
	if (type == FTW_F && len > 5 && !strcmp(path + len - 5, ".gcda"))
		put_file(path + strlen(GCOV), path);
	return error;
}

void counters_keep(int64_t limit_ns)
{
	int64_t waited_ns;
	int n;

	/* a kernel without debugfs has no such folder */
	if (access(DEBUGFS, F_OK) ||
	    (mount("debugfs", DEBUGFS, "debugfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) &&
	     errno != EBUSY) ||
	    access(GCOV, F_OK))
		return;
	entry = malloc(ENTRY_MAX);
	out_fd = open(COUNTERS, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (!entry || out_fd < 0) {
		perror("cell-init: cannot make " COUNTERS);
		return;
	}
	waited_ns = await_closing(limit_ns);
	n = snprintf(entry, ENTRY_MAX, "%" PRId64 "\n", waited_ns);
	put("waited_ns", (size_t)n);
	put_file("sctp", OBJECTS);
	put_file("sockets", SOCKETS);
	put_slabs();
	if (nftw(GCOV, put_counted, WALK_FILES, FTW_PHYS) < 0 && !error)
		error = errno;
	if (close(out_fd) && !error)
		error = errno;
	free(entry);
	if (error)
		fprintf(stderr, "cell-init: cannot write " COUNTERS ": %s\n", strerror(error));
}
