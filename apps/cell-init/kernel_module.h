/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_module: loads modules of a guest's kernel, in the order of the steps (dependencies first). */
#ifndef NETWARP_KERNEL_MODULE_H
#define NETWARP_KERNEL_MODULE_H

#include "cell.h"
#include "step.h"

/* A module that is loaded already is no failure. 0, or -1 with the reason set. */
int kernel_module_load(struct cell *cell, const struct step_module *step);

#endif
