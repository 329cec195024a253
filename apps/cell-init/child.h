/* SPDX-License-Identifier: Apache-2.0 */
/*
 * child: starts a program by vfork(2). Until execve(2) the child shares our memory: no pages are copied, and
 * the child reports a failure by writing it into struct child. Between vfork() and execve() it may only make
 * system calls (no malloc, no stdio).
 *
 * Before execve() the child enters the network namespace, opens standard input (/dev/null) and both outputs,
 * sets a timer slack of 1 ns (clock_timerslack()), lowers the soft limit of open files to 1024 (select(2)
 * fails above) and unblocks all signals.
 */
#ifndef NETWARP_CHILD_H
#define NETWARP_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

struct child {
	char **argv;
	char **envp;
	int ns_fd; /* descriptor of the program's network namespace */
	const char *stdout_file;
	const char *stderr_file;
	bool terminal; /* standard input and outputs are the guest's second console; both files are ignored */
	/* set when the program could not be started: the operation that failed, and its errno; else 0 */
	const char *stage;
	int error;
};

/*
 * Returns the pid, or -1 with errno set when vfork() failed. When child->error is set the program did not
 * start, but the pid exists: the caller must wait for it.
 */
pid_t child_start(struct child *child);

#endif
