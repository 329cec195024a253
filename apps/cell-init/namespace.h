/* SPDX-License-Identifier: Apache-2.0 */
/* namespace: network namespaces, held by descriptors NS_FD_BASE + index, so that none outlives this process.
 */
#ifndef NETWARP_NAMESPACE_H
#define NETWARP_NAMESPACE_H

#include "cell.h"
#include "step.h"

#define NS_OWN (-1) /* the namespace that this process was started in */

/* Both return 0, or -1 with the reason set. namespace_enter: an index, or NS_OWN. */
int namespace_create(struct cell *cell, const struct step_ns *step);
int namespace_enter(struct cell *cell, int index);

#endif
