/* SPDX-License-Identifier: Apache-2.0 */
/* sctp_socket: a one-to-one style socket (RFC 6458 section 4) with every option set and its addresses bound.
 */
#ifndef NETWARP_SCTP_SOCKET_H
#define NETWARP_SCTP_SOCKET_H

struct flow;

/* All notifications are on, the buffers are those asked for. The descriptor, or -1 after flow_error(). */
int sctp_socket_open(struct flow *flow);

#endif
