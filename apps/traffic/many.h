/* SPDX-License-Identifier: Apache-2.0 */
/* many: the flows of a file in one process (`sender --flows FILE`, `receiver --flows FILE`). Each line has
 * the file of the flow's records and then its options, with a space between two words. */
#ifndef NETWARP_MANY_H
#define NETWARP_MANY_H

#include "config.h"

#include <stdbool.h>

/* Whether this is all that the command line says. */
bool many_asked(int argc, char **argv);

/*
 * Run `flow` for each line: it gets the options and the file of the records, and returns the flow's status.
 * When all flows wait, a line {"record":"listening"} on stdout says so. Returns the highest status.
 */
int many_run(const char *path, unsigned int role, int (*flow)(struct config *config, int out));

#endif
