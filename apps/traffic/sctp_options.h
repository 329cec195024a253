/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sctp_options: the knobs of SCTP, set on a socket before there is an association, which copies them, and
 * read back twice: from the socket, then from the association. A value that is not in force as asked is an
 * error.
 */
#ifndef NETWARP_SCTP_OPTIONS_H
#define NETWARP_SCTP_OPTIONS_H

struct flow;

/* Set what is asked for and read it back. 0, or -1 after flow_error(). */
int sctp_options_set(struct flow *flow, int fd);
/* There is an association: set what needs one, and read everything back from it. Likewise. */
int sctp_options_connected(struct flow *flow);
/* The members of `in_force`: every knob as the kernel has it. */
void sctp_options_write(struct flow *flow);

#endif
