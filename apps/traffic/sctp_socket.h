/* SPDX-License-Identifier: Apache-2.0 */
/* sctp_socket: a one-to-one style SCTP socket (RFC 6458 section 4) with its options set and its addresses
 * bound. */
#ifndef NETWARP_SCTP_SOCKET_H
#define NETWARP_SCTP_SOCKET_H

struct flow;

/* Sets the options of the configuration, turns on every notification that sctp.c reads, and binds. With
 * --bare it sets only the options that the command line names, and no notification: emulators of other
 * processors know few socket options (docs/android.md). Options come before bind: some have no effect later.
 * Returns the descriptor, or -1 after flow_error(). */
int sctp_socket_open(struct flow *flow);

#endif
