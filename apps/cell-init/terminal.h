/* SPDX-License-Identifier: Apache-2.0 */
/* terminal: the guest's second console, which guest-exec --terminal connects to a terminal of the host. */
#ifndef NETWARP_TERMINAL_H
#define NETWARP_TERMINAL_H

#include "cell.h"

/* Mount the file system that has its device. 0, or -1 with the reason set. */
int terminal_prepare(struct cell *cell);
/* In the child, by system calls alone: a session of its own, with the terminal as standard input, output and
 * error. 0, or -1 and errno. */
int terminal_become(void);

#endif
