/* SPDX-License-Identifier: Apache-2.0 */
/* snoop: the snoop protocol of Balakrishnan, Seshan, Amir and Katz (1995) for data towards the mobile host.
 */
#ifndef NETWARP_SNOOP_H
#define NETWARP_SNOOP_H

struct agent_kind;

extern const struct agent_kind snoop_kind;

#endif
