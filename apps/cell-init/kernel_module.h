/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_module: loads a module into the guest's kernel, without parameters. Dependencies are not resolved
 * here: the steps must name them first.
 */
#ifndef NETWARP_KERNEL_MODULE_H
#define NETWARP_KERNEL_MODULE_H

#include "cell.h"
#include "step.h"

/*
 * A module that is already loaded is not a failure. Outside a guest it is refused: it would go into this
 * machine's own kernel. 0, or -1 with the cell's reason set.
 */
int kernel_module_load(struct cell *cell, const struct step_module *step);

#endif
