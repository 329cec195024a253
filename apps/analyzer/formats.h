/* Recognises the format of a capture file and reads its records. */
#ifndef ANALYZER_FORMATS_H
#define ANALYZER_FORMATS_H

#include "capture_file.h"

/* Reads the file header. false: not a capture, see .trouble. */
bool capture_start(struct capture_file *p);
/* The next whole record; false: the end (.cut_off and .trouble say what kind of end). */
bool capture_next(struct capture_file *p, struct record *r);

#endif
