/* SPDX-License-Identifier: Apache-2.0 */
/*
 * child: starts a program by vfork(): until it runs its program the child uses our memory, so no pages are
 * copied, and it reports what failed. It may only make system calls.
 */
#ifndef NETWARP_CHILD_H
#define NETWARP_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

struct child {
	char **argv;
	char **envp;
	int ns_fd; /* of its network namespace */
	const char *stdout_file;
	const char *stderr_file;
	bool terminal; /* in place of both files */
	/* of a program that did not start: what failed, and its errno, else 0 */
	const char *stage;
	int error;
};

/* Returns the pid, or -1 and errno. With child->error it has to be waited for. */
pid_t child_start(struct child *child);

#endif
