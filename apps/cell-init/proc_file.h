/* SPDX-License-Identifier: Apache-2.0 */
/* proc_file: records the text of a file below /proc: the kernel's counters of a namespace. */
#ifndef NETWARP_PROC_FILE_H
#define NETWARP_PROC_FILE_H

#include "cell.h"
#include "step.h"

int proc_file_record(struct cell *cell, const struct step_proc *step);

#endif
