/* SPDX-License-Identifier: Apache-2.0 */
/* terminal: the guest's second console, which guest-exec --terminal ties to a terminal of the host. */
#ifndef NETWARP_TERMINAL_H
#define NETWARP_TERMINAL_H

struct cell;

/* Make its device reachable. 0, or -1 with the reason set. */
int terminal_prepare(struct cell *cell);
/* In a child that is to run on it (system calls alone): its session, its standard input, output and error. 0
 * or -1 and errno. */
int terminal_become(void);

#endif
