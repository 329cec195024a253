// SPDX-License-Identifier: Apache-2.0
#include "number.h"

#include <errno.h>
#include <stdlib.h>

bool number_parse(const char *text, int64_t low, int64_t high, int64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoll(text, &end, 10);
	return !errno && end != text && !*end && *value >= low && *value <= high;
}
