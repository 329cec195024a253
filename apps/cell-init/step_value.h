/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_value: decodes and checks the value of one key of a step: text, file name, number or bytes. No system
 * call. Every function returns 0, or -1 with *why filled.
 */
#ifndef NETWARP_STEP_VALUE_H
#define NETWARP_STEP_VALUE_H

#include <stddef.h>
#include <stdint.h>

struct value_error {
	char text[160];
};

struct bytes {
	char *data; /* followed by a NUL byte that .len does not count */
	size_t len;
};

/*
 * Replace each %XX in `text` by its byte, in place. A byte that had to be written as %XX and was not is an
 * error: orchestrator/netwarp/testbed/steps.py has the same list of plain characters.
 */
int value_decode(char *text, struct bytes *value, struct value_error *why);
/* Refuse an empty text and one with a NUL byte. */
int value_check_text(const struct bytes *value, struct value_error *why);
/* Refuse a file name that is absolute or contains "..": files stay in the cell's directory. */
int value_check_file(const struct bytes *value, struct value_error *why);
/* Read a decimal number in [min, max]. */
int value_number(const struct bytes *value, int64_t min, int64_t max, int64_t *number,
		 struct value_error *why);
/* Replace pairs of hexadecimal digits by their bytes, in place. */
int value_bytes(struct bytes *value, struct value_error *why);

#endif
