/* SPDX-License-Identifier: Apache-2.0 */
/*
 * terminal: makes the guest's second console the terminal of a process. guest-exec --terminal connects that
 * console to a terminal of the host (`netwarp shell`).
 */
#ifndef NETWARP_TERMINAL_H
#define NETWARP_TERMINAL_H

#include "cell.h"

/* Mount devtmpfs, which has the console's device. Once per guest. 0, or -1 with the cell's reason set. */
int terminal_prepare(struct cell *cell);
/*
 * Called in the child between vfork() and execve(), so by system calls only: start a new session with the
 * console as controlling terminal, standard input, output and error. 0, or -1 with errno set.
 */
int terminal_become(void);

#endif
