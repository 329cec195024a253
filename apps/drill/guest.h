/* SPDX-License-Identifier: Apache-2.0 */
/* guest: what drill owns as pid 1 of a guest: mounts, a network namespace of its own, the shell, the end. */
#ifndef NETWARP_DRILL_GUEST_H
#define NETWARP_DRILL_GUEST_H

#include <stdint.h>

/* Mounts proc, sysfs, /run, /tmp and the guest's directory (DIRECTORY of report.h), enters a new network
 * namespace. 0, or -1 with what failed on standard error. */
int guest_enter(void);
/* Runs a command by /bin/sh in the folder of the scripts' files, its output in shell.txt. Returns its exit
 * status, or -1. */
int guest_shell(const char *command);
/* Powers off at that instant, whatever happens, with a line `stopped` that names the event under way. */
int guest_watch(int64_t until_ns, const int *event);
/* After the last event: has kmemleak look, where the kernel has it, and powers off. */
void guest_end(void) __attribute__((noreturn));
/* Powers off. */
void guest_leave(void) __attribute__((noreturn));

#endif
