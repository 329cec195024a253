/* SPDX-License-Identifier: Apache-2.0 */
/* steps_rules: what one key alone cannot show: the order of phases, namespaces and processes that exist. */
#ifndef NETWARP_STEPS_RULES_H
#define NETWARP_STEPS_RULES_H

#include "step.h"

/* Check `count` decoded steps and set the phase of each. Returns 0, or -1 with *error filled. */
int steps_check(struct step *list, size_t count, struct step_error *error);

#endif
