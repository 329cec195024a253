// SPDX-License-Identifier: Apache-2.0
/* Documented in step_value.h. */
#include "step_value.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static int __attribute__((format(printf, 2, 3))) fail(struct value_error *why, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why->text, sizeof(why->text), format, args);
	va_end(args);
	return -1;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* The characters of _PLAIN in orchestrator/netwarp/testbed/steps.py, which writes the values. */
static bool is_plain(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
	       (c && strchr("_./:,@+-", c));
}

int value_decode(char *text, struct bytes *value, struct value_error *why)
{
	size_t len = strlen(text), from, to = 0;
	int high, low;

	for (from = 0; from < len; to++) {
		if (is_plain(text[from])) {
			text[to] = text[from++];
			continue;
		}
		high = text[from] == '%' && len - from >= 3 ? hex_digit(text[from + 1]) : -1;
		low = high >= 0 ? hex_digit(text[from + 2]) : -1;
		if (low < 0)
			return fail(why, "byte %zu of the value must be written %%XX", from);
		text[to] = (char)(high << 4 | low);
		from += 3;
	}
	text[to] = '\0';
	*value = (struct bytes){.data = text, .len = to};
	return 0;
}

int value_check_text(const struct bytes *value, struct value_error *why)
{
	if (value->len == 0)
		return fail(why, "is empty");
	if (memchr(value->data, '\0', value->len))
		return fail(why, "contains a NUL byte");
	return 0;
}

int value_check_file(const struct bytes *value, struct value_error *why)
{
	const char *path = value->data;

	if (path[0] == '/' || !strcmp(path, "..") || !strncmp(path, "../", 3) || strstr(path, "/../") ||
	    (value->len >= 3 && !strcmp(path + value->len - 3, "/..")))
		return fail(why, "'%.100s' must be relative and without ..", path);
	return 0;
}

int value_number(const struct bytes *value, int64_t min, int64_t max, int64_t *number,
		 struct value_error *why)
{
	size_t sign = value->len && value->data[0] == '-', i;

	*number = 0;
	for (i = sign; i < value->len; i++) {
		if (value->data[i] < '0' || value->data[i] > '9' || *number > max / 10)
			break;
		*number = *number * 10 + (value->data[i] - '0');
	}
	if (sign)
		*number = -*number;
	if (value->len == sign || i < value->len || *number < min || *number > max)
		return fail(why, "'%.40s' is not a whole number from %lld to %lld", value->data,
			    (long long)min, (long long)max);
	return 0;
}

int value_bytes(struct bytes *value, struct value_error *why)
{
	int high, low;
	size_t i;

	if (value->len == 0 || value->len % 2)
		return fail(why, "%zu hex digits do not make whole bytes", value->len);
	for (i = 0; i < value->len / 2; i++) {
		high = hex_digit(value->data[2 * i]);
		low = hex_digit(value->data[2 * i + 1]);
		if (high < 0 || low < 0)
			return fail(why, "not a hex digit in byte %zu", i);
		value->data[i] = (char)(high << 4 | low);
	}
	value->len /= 2;
	return 0;
}
