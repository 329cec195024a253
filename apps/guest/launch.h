/* SPDX-License-Identifier: Apache-2.0 */
/* launch: functions that guest-exec and netns-exec, which start a cell's sandbox, have in common. */
#ifndef NETWARP_LAUNCH_H
#define NETWARP_LAUNCH_H

#include <stdint.h>
#include <sys/types.h>

/* EXIT_USAGE: wrong options. EXIT_CANNOT: this machine does not permit what the sandbox needs. */
enum exit_status { EXIT_USAGE = 2, EXIT_CANNOT = 77 };

/* Set the program's name for messages. Call it before every other function here. */
void launch_begin(const char *program);
/* Print "<program>: <format>" on standard error and exit with `status`. */
void die(int status, const char *format, ...) __attribute__((noreturn, format(printf, 2, 3)));
/* The value of option --name as a number; a text that is not a whole decimal number exits with EXIT_USAGE. */
uint64_t number(const char *name, const char *text);
/*
 * Ask the kernel to send this process SIGKILL when its parent ends (PR_SET_PDEATHSIG), so that no sandbox
 * outlives netwarp. Exits unless `expected` is the parent's pid (0: any parent).
 */
void die_with_parent(pid_t expected);
/*
 * Drop root permanently: run as `user`, "UID:GID", without supplementary groups and capabilities. Call
 * die_with_parent() again afterwards: the kernel clears PR_SET_PDEATHSIG when a process changes its user.
 */
void drop_root(const char *user);
/* Close all descriptors from `first` on. */
void close_from(int first);
/*
 * Make standard input /dev/null, and standard output and error the file console.txt in the working
 * directory.
 */
void open_console(void);

#endif
