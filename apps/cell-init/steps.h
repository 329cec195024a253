/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steps: parses the file steps.txt (docs/formats.md, "Steps") into decoded, checked steps. No system call:
 * tested and fuzzed on the host.
 */
#ifndef NETWARP_STEPS_H
#define NETWARP_STEPS_H

#include "step.h"

#define STEPS_FIRST_LINE "netwarp-steps 1" /* written by orchestrator/netwarp/testbed/steps.py */

struct steps {
	struct step *list;
	size_t count;
	char *text;   /* copy of the file; the texts in .list point into it */
	char **texts; /* the lists of keys that are given several times */
	struct step_error error;
};

/* Parse and check the whole file. Returns 0, or -1 with .error filled; call steps_free() in both cases. */
int steps_parse(struct steps *steps, const char *text, size_t len);
void steps_free(struct steps *steps);

/* The first step of that verb, or NULL. */
const struct step *steps_find(const struct steps *steps, enum verb verb);

#endif
