// SPDX-License-Identifier: Apache-2.0
/* Documented in reader.h. */
#include <stdio.h>

#include "reader.h"

int reader_fail(struct nwa *a, const char *file, const char *why)
{
	if (!a->error[0])
		snprintf(a->error, sizeof(a->error), "%s%s%s", file, *file ? ": " : "", why);
	return -1;
}
