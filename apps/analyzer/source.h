/* Capture files as the reader's sources: opening, the next record of each, their rows and interfaces. */
#ifndef ANALYZER_SOURCE_H
#define ANALYZER_SOURCE_H

#include "reader.h"

/* Opens a file (or `memory`) as the next source. -1: see the reader's error. */
int source_open(struct nwa *a, uint32_t source, const char *name, const struct memory_file *memory);
/* The file's next record becomes its head. */
void source_advance(struct nwa *a, uint32_t source);
void source_close(struct file *file);

#endif
