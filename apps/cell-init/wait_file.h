/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wait_file: waits by inotify until a file exists or contains a text. It does not poll: the wait ends at
 * the write itself, at the same virtual time in every run. After step->timeout_ns the cell fails.
 */
#ifndef NETWARP_WAIT_FILE_H
#define NETWARP_WAIT_FILE_H

#include "cell.h"
#include "step.h"

/* Both return 0, or -1 with the cell's reason set. */
/* Wait until a process' standard output contains step->text. If the process exits before, the cell fails. */
int wait_file_output(struct cell *cell, const struct step_output *step);
/* Wait until a process of the sandbox has created the file; its directory is made first. */
int wait_file_made(struct cell *cell, const struct step_file *step);

#endif
