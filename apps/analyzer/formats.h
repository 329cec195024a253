/* SPDX-License-Identifier: Apache-2.0 */
/* Recognises the format of a capture file and reads its records. */
#ifndef ANALYZER_FORMATS_H
#define ANALYZER_FORMATS_H

#include "capture_file.h"

/* Recognise the format and read the file header. false: not a capture file, or damaged; see .trouble. */
bool capture_start(struct capture_file *p);
/*
 * Read the next whole record. false: the end of the file, or of what can be read (.cut_off, with .trouble).
 */
bool capture_next(struct capture_file *p, struct record *r);

#endif
