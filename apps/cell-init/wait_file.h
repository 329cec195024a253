/* SPDX-License-Identifier: Apache-2.0 */
/* wait_file: waits for a file, or for text in one, by inotify: the wait ends at the write itself. */
#ifndef NETWARP_WAIT_FILE_H
#define NETWARP_WAIT_FILE_H

#include "cell.h"
#include "step.h"

/* Both return 0, or -1 with the reason set. */
/* Until a process' standard output contains the text. Its exit before that is a failure. */
int wait_file_output(struct cell *cell, const struct step_output *step);
/* Until a process of the sandbox has made the file. */
int wait_file_made(struct cell *cell, const struct step_file *step);

#endif
