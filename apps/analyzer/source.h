/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens capture files as sources of a reader, reads the next record of each, and fills the tables `sources`
 * and `interfaces`.
 */
#ifndef ANALYZER_SOURCE_H
#define ANALYZER_SOURCE_H

#include "reader.h"

/* Open the file `name`, or `memory` if it is not NULL, as source `source`. 0, or -1 with a->error set. */
int source_open(struct nwa *a, uint32_t source, const char *name, const struct memory_file *memory);
/* Read the source's next record into files[source].record, or clear .there at its end. */
void source_advance(struct nwa *a, uint32_t source);
void source_close(struct file *file);

#endif
