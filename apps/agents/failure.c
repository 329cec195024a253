// SPDX-License-Identifier: Apache-2.0
/* Documented in failure.h. */
#include "failure.h"

#include "ndjson.h"

#include <string.h>

int failure(struct ndjson *out, const char *what, int error)
{
	ndjson_begin(out, "error");
	ndjson_str(out, "message", what);
	ndjson_str(out, "error", strerror(error));
	ndjson_end(out);
	return 1;
}
