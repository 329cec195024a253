/* SPDX-License-Identifier: Apache-2.0 */
/* steps: steps.txt (docs/formats.md, "Steps") as decoded, checked steps. Pure: tested and fuzzed on the host.
 */
#ifndef NETWARP_STEPS_H
#define NETWARP_STEPS_H

#include "step.h"

#define STEPS_FIRST_LINE "netwarp-steps 1"

struct steps {
	struct step *list;
	size_t count;
	char *text;   /* the values of all steps */
	char **texts; /* the lists of texts of all steps */
	struct step_error error;
};

/* Parse and check. Returns 0, or -1 with .error filled; steps_free() either way. */
int steps_parse(struct steps *steps, const char *text, size_t len);
void steps_free(struct steps *steps);

/* The first step of that verb, or NULL. */
const struct step *steps_find(const struct steps *steps, enum verb verb);

#endif
