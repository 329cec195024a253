/* SPDX-License-Identifier: Apache-2.0 */
/* mtcp: the supervisor host of M-TCP (Brown and Singh, 1997) for data towards the mobile host. */
#ifndef NETWARP_MTCP_H
#define NETWARP_MTCP_H

struct agent_kind;

extern const struct agent_kind mtcp_kind;

#endif
