/* SPDX-License-Identifier: Apache-2.0 */
/* step_value: the value of one key of a step, as text, number or bytes. Pure; 0, or -1 with *why filled. */
#ifndef NETWARP_STEP_VALUE_H
#define NETWARP_STEP_VALUE_H

#include <stddef.h>
#include <stdint.h>

struct value_error {
	char text[160];
};

struct bytes {
	char *data; /* a NUL byte follows that .len does not count */
	size_t len;
};

/* Undo %XX in place. */
int value_decode(char *text, struct bytes *value, struct value_error *why);
/* Text: not empty, no NUL byte. */
int value_check_text(const struct bytes *value, struct value_error *why);
/* A file's name: relative and without "..". */
int value_check_file(const struct bytes *value, struct value_error *why);
/* A decimal number in [min, max]. */
int value_number(const struct bytes *value, int64_t min, int64_t max, int64_t *number,
		 struct value_error *why);
/* Replace hexadecimal digits by the bytes that they mean. */
int value_bytes(struct bytes *value, struct value_error *why);

#endif
