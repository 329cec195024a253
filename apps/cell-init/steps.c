// SPDX-License-Identifier: Apache-2.0
/* Documented in steps.h. */
#include "steps.h"

#include "steps_rules.h"

#include <stdlib.h>
#include <string.h>

static size_t count_char(const char *text, size_t len, char c)
{
	size_t i, n = 0;

	for (i = 0; i < len; i++)
		n += text[i] == c;
	return n;
}

int steps_parse(struct steps *steps, const char *text, size_t len)
{
	size_t lines = count_char(text, len, '\n') + 1, words = count_char(text, len, ' ') + lines;
	struct step here = {.line = 1, .verb = VERB_COUNT};
	char *line, *end, **pool;

	memset(steps, 0, sizeof(*steps));
	steps->text = malloc(len + 1);
	steps->list = calloc(lines, sizeof(*steps->list));
	steps->texts = calloc(words * STEP_LISTS, sizeof(*steps->texts));
	if (!steps->text || !steps->list || !steps->texts)
		return step_fail(&steps->error, &here, NULL, "out of memory");
	memcpy(steps->text, text, len);
	steps->text[len] = '\0';
	if (memchr(steps->text, '\0', len))
		return step_fail(&steps->error, &here, NULL, "the file contains a NUL byte");
	pool = steps->texts;
	for (line = steps->text; line; line = end ? end + 1 : NULL, here.line++) {
		end = strchr(line, '\n');
		if (end)
			*end = '\0';
		if (here.line == 1 && strcmp(line, STEPS_FIRST_LINE))
			return step_fail(&steps->error, &here, NULL, "the first line must be '%s'",
					 STEPS_FIRST_LINE);
		if (here.line == 1 || *line == '\0' || *line == '#')
			continue;
		steps->list[steps->count] = here;
		if (step_decode(&steps->list[steps->count], line, &pool, &steps->error))
			return -1;
		steps->count++;
	}
	return steps_check(steps->list, steps->count, &steps->error);
}

void steps_free(struct steps *steps)
{
	free(steps->text);
	free(steps->list);
	free(steps->texts);
	memset(steps, 0, sizeof(*steps));
}

const struct step *steps_find(const struct steps *steps, enum verb verb)
{
	size_t i;

	for (i = 0; i < steps->count; i++)
		if (steps->list[i].verb == verb)
			return &steps->list[i];
	return NULL;
}
