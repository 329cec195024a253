/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proc_file: writes the text of a file below /proc, such as net/snmp, into the record `proc`: the kernel's
 * counters of a network namespace. orchestrator/netwarp/measure/cell_records.py reads it.
 */
#ifndef NETWARP_PROC_FILE_H
#define NETWARP_PROC_FILE_H

#include "cell.h"
#include "step.h"

/*
 * At most 64 KiB are read; a file that does not exist is recorded as null. 0, or -1 with the cell's reason
 * set.
 */
int proc_file_record(struct cell *cell, const struct step_proc *step);

#endif
