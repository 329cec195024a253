/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steps_rules: checks that need more than one step: the order of phases and times, and that the namespaces,
 * processes and packet programs a step names are made by an earlier step.
 */
#ifndef NETWARP_STEPS_RULES_H
#define NETWARP_STEPS_RULES_H

#include "step.h"

/* Check `count` decoded steps and set the phase of each. Returns 0, or -1 with *error filled. */
int steps_check(struct step *list, size_t count, struct step_error *error);

#endif
