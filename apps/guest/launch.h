/* SPDX-License-Identifier: Apache-2.0 */
/* What the programs have in common that become (guest-exec) or hold (netns-exec) a cell's sandbox. */
#ifndef NETWARP_LAUNCH_H
#define NETWARP_LAUNCH_H

#include <stdint.h>
#include <sys/types.h>

enum exit_status { EXIT_USAGE = 2, EXIT_CANNOT = 77 };

/* the program's name, for messages */
extern const char launcher[];

void die(int status, const char *format, ...) __attribute__((noreturn, format(printf, 2, 3)));
/* The value of option --name, a whole number; else the end. */
uint64_t number(const char *name, const char *text);
/* A sandbox must not outlive whoever waits for it. wanted: refuse to go on unless this is the parent (0:
 * any). */
void die_with_parent(pid_t wanted);
/*
 * From here on somebody else, "UID:GID", for good: no group, no capability of root's is kept. After it
 * die_with_parent() has to be called again: the kernel forgets that wish when a process becomes another user.
 */
void become(const char *user);
void close_from(int first);
/* Standard input: nothing; standard output and error: console.txt of the working directory. */
void open_console(void);

#endif
