/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sctp_options: sets the SCTP options of a flow on its socket before the association exists; the
 * association copies them. They are read back twice, from the socket and later from the association. A
 * value that differs from the one asked for ends the flow with an error.
 */
#ifndef NETWARP_SCTP_OPTIONS_H
#define NETWARP_SCTP_OPTIONS_H

struct flow;

/* Set the options that were given, then read them back. 0, or -1 after flow_error(). */
int sctp_options_set(struct flow *flow, int fd);
/*
 * Called once the association exists: set the stream values, then read every option back from it. 0, or -1
 * after flow_error().
 */
int sctp_options_connected(struct flow *flow);
/* Write the members of the record `in_force`: every option as the kernel has it; null where it gives none. */
void sctp_options_write(struct flow *flow);

#endif
