/* SPDX-License-Identifier: Apache-2.0 */
/* launch: common parts of guest-exec and netns-exec, which start a cell's sandbox. */
#ifndef NETWARP_LAUNCH_H
#define NETWARP_LAUNCH_H

#include <stdint.h>
#include <sys/types.h>

enum exit_status { EXIT_USAGE = 2, EXIT_CANNOT = 77 };

/* The program's name, for messages; set first of all. */
void launch_begin(const char *program);
void die(int status, const char *format, ...) __attribute__((noreturn, format(printf, 2, 3)));
/* The value of option --name, a whole number; anything else ends the program. */
uint64_t number(const char *name, const char *text);
/* End when the parent process ends: a sandbox must not outlive it. Fail unless `expected` is the parent (0:
 * any).
 */
void die_with_parent(pid_t expected);
/*
 * Drop root for good: run as "UID:GID" from here on, without supplementary groups or capabilities. Call
 * die_with_parent() again after it: the kernel clears that setting when a process changes its user.
 */
void drop_root(const char *user);
void close_from(int first);
/* Standard input: empty; standard output and error: console.txt of the working directory. */
void open_console(void);

#endif
