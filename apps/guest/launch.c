// SPDX-License-Identifier: Apache-2.0
/* Documented in launch.h. */
#include "launch.h"

#include <asm/unistd.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define CONSOLE_FILE "console.txt"

static const char *launcher;

void launch_begin(const char *program)
{
	launcher = program;
}

void die(int status, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s: ", launcher);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(status);
}

uint64_t number(const char *name, const char *text)
{
	unsigned long long value;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || end == text || *end || *text == '-' || *text == '+' || *text == ' ')
		die(EXIT_USAGE, "--%s: '%s' is not a whole number", name, text);
	return value;
}

void die_with_parent(pid_t expected)
{
	pid_t parent = getppid();

	if (prctl(PR_SET_PDEATHSIG, SIGKILL))
		die(EXIT_CANNOT, "PR_SET_PDEATHSIG: %s", strerror(errno));
	if (getppid() != parent || (expected && parent != expected))
		die(1, "the parent has gone");
}

void drop_root(const char *user)
{
	char *colon, *end;
	unsigned long uid, gid;

	errno = 0;
	uid = strtoul(user, &colon, 10);
	gid = *colon == ':' ? strtoul(colon + 1, &end, 10) : 0;
	if (errno || colon == user || *colon != ':' || end == colon + 1 || *end || !uid || !gid ||
	    uid >= UINT32_MAX || gid >= UINT32_MAX)
		die(EXIT_USAGE, "--user: '%s' is not UID:GID, and neither is root's", user);
	if (setgroups(0, NULL) || setresgid((gid_t)gid, (gid_t)gid, (gid_t)gid) ||
	    setresuid((uid_t)uid, (uid_t)uid, (uid_t)uid))
		die(EXIT_CANNOT, "--user %s: %s", user, strerror(errno));
	if (setuid(0) == 0)
		die(EXIT_CANNOT, "--user %s: root could be had back", user);
	/* else /proc/self would stay root's, and with it uid_map and our descriptors' names */
	if (prctl(PR_SET_DUMPABLE, 1))
		die(EXIT_CANNOT, "PR_SET_DUMPABLE: %s", strerror(errno));
}

void close_from(int first)
{
	/* Linux 5.9, glibc 2.34; before it the limit of descriptors is the bound */
	if (syscall(__NR_close_range, (unsigned int)first, ~0U, 0) == 0)
		return;
	for (long fd = first; fd < sysconf(_SC_OPEN_MAX); fd++)
		close((int)fd);
}

void open_console(void)
{
	int in = open("/dev/null", O_RDONLY),
	    out = open(CONSOLE_FILE, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0644);

	if (in < 0 || out < 0)
		die(EXIT_CANNOT, "cannot open " CONSOLE_FILE ": %s", strerror(errno));
	if (dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 || dup2(out, STDERR_FILENO) < 0)
		die(EXIT_CANNOT, "dup2: %s", strerror(errno));
}
