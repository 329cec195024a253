/* SPDX-License-Identifier: Apache-2.0 */
/* failure: the record `error` by which an agent says why it ends. */
#ifndef NETWARP_FAILURE_H
#define NETWARP_FAILURE_H

struct ndjson;

/* Write it; `error` is an errno. Always returns 1, the exit status. */
int failure(struct ndjson *out, const char *what, int error);

#endif
