// SPDX-License-Identifier: Apache-2.0
/* Documented in options.h. */
#include "options.h"

#include "ndjson.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct option_row *find(const struct option_table *table, const char *name, size_t len)
{
	size_t i;

	for (i = 0; i < table->count; i++)
		if (strlen(table->rows[i].name) == len && memcmp(table->rows[i].name, name, len) == 0)
			return &table->rows[i];
	return NULL;
}

static int fail(const struct option_table *table, const struct option_row *row, const char *reason,
		struct option_result *result)
{
	snprintf(result->message, sizeof(result->message), "%s: --%s: %.300s; example: --%s%s%s",
		 table->program, row->name, reason, row->name, row->example ? " " : "",
		 row->example ? row->example : "");
	return -1;
}

int options_error(const struct option_table *table, const char *name, const char *reason,
		  struct option_result *result)
{
	const struct option_row *row = find(table, name, strlen(name));

	if (row)
		return fail(table, row, reason, result);
	snprintf(result->message, sizeof(result->message), "%s: %.200s: %.200s", table->program, name,
		 reason);
	return -1;
}

/* A decimal number without sign, blanks or leading plus, within [min, max]. */
static bool number(const char *text, size_t len, int64_t min, int64_t max, int64_t *to)
{
	int64_t value = 0;
	size_t i;

	if (len == 0)
		return false;
	for (i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, text[i] - '0', &value))
			return false;
	}
	if (value < min || value > max)
		return false;
	*to = value;
	return true;
}

static bool one_of(const char *words, const char *value)
{
	size_t len = strlen(value), n;

	if (len == 0)
		return false;
	for (; words; words = strchr(words, '|'), words = words ? words + 1 : NULL) {
		n = strcspn(words, "|");
		if (n == len && memcmp(words, value, n) == 0)
			return true;
	}
	return false;
}

static int set_numbers(const struct option_table *table, const struct option_row *row, const char *value,
		       struct number_list *list, struct option_result *result)
{
	char reason[160];
	size_t len;

	for (;; value += len + 1) {
		len = strcspn(value, ",");
		if (list->count == NUMBER_LIST_MAX)
			return fail(table, row, "has too many numbers", result);
		if (!number(value, len, row->min, row->max, &list->items[list->count])) {
			snprintf(reason, sizeof(reason),
				 "'%.40s' does not begin with a whole number from %" PRId64 " to %" PRId64,
				 value, row->min, row->max);
			return fail(table, row, reason, result);
		}
		list->count++;
		if (value[len] == '\0')
			return 0;
	}
}

static int set_timed(const struct option_table *table, const struct option_row *row, const char *value,
		     struct timed_address_list *list, struct option_result *result)
{
	const char *comma = strchr(value, ',');
	unsigned int n = list->count;

	if (n == TIMED_ADDRESS_MAX)
		return fail(table, row, "given too often", result);
	if (!comma || !number(value, (size_t)(comma - value), row->min, row->max, &list->at_ns[n]) ||
	    !address_parse(comma + 1, &list->items[n]))
		return fail(table, row, "wanted nanoseconds from T0, a comma and a numeric address", result);
	if (n > 0 && list->at_ns[n] < list->at_ns[n - 1])
		return fail(table, row, "the times have to be in order", result);
	list->count = n + 1;
	return 0;
}

static int set_address(const struct option_table *table, const struct option_row *row, const char *value,
		       struct address_list *list, struct option_result *result)
{
	unsigned int i;

	if (list->count == (row->kind == OPTION_ADDRESS ? 1 : ADDRESS_LIST_MAX))
		return fail(table, row, "given too often", result);
	if (!address_parse(value, &list->items[list->count]))
		return fail(table, row, "not a numeric IPv4 or IPv6 address", result);
	for (i = 0; i < list->count; i++)
		if (address_equal(&list->items[i].any, &list->items[list->count].any))
			return fail(table, row, "the same address twice", result);
	list->count++;
	return 0;
}

static int set(const struct option_table *table, const struct option_row *row, const char *value,
	       void *values, struct option_result *result)
{
	char *at = (char *)values + row->offset;
	char reason[160];

	switch (row->kind) {
	case OPTION_FLAG:
		*(bool *)at = true;
		return 0;
	case OPTION_WORD:
		if (*value == '\0')
			return fail(table, row, "is empty", result);
		if (row->words && !one_of(row->words, value)) {
			snprintf(reason, sizeof(reason), "has to be one of %s", row->words);
			return fail(table, row, reason, result);
		}
		*(const char **)at = value;
		return 0;
	case OPTION_NUMBER:
		if (number(value, strlen(value), row->min, row->max, (int64_t *)at))
			return 0;
		snprintf(reason, sizeof(reason), "'%.40s' is not a whole number from %" PRId64 " to %" PRId64,
			 value, row->min, row->max);
		return fail(table, row, reason, result);
	case OPTION_NUMBERS:
		return set_numbers(table, row, value, (struct number_list *)at, result);
	case OPTION_ADDRESS:
	case OPTION_ADDRESSES:
		return set_address(table, row, value, (struct address_list *)at, result);
	case OPTION_TIMED_ADDRESS:
		return set_timed(table, row, value, (struct timed_address_list *)at, result);
	}
	return -1;
}

static bool repeatable(const struct option_row *row)
{
	return row->kind == OPTION_ADDRESSES || row->kind == OPTION_TIMED_ADDRESS;
}

int options_parse(const struct option_table *table, int argc, char **argv, void *values,
		  struct option_result *result)
{
	const struct option_row *row;
	const char *name, *value;
	size_t index, len;
	int i;

	memset(result, 0, sizeof(*result));
	for (index = 0; index < table->count; index++)
		if (table->rows[index].kind == OPTION_NUMBER)
			*(int64_t *)((char *)values + table->rows[index].offset) = table->rows[index].initial;
	for (i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--help") == 0) {
			result->help = true;
			return 0;
		}
		name = argv[i] + 2;
		len = strncmp(argv[i], "--", 2) == 0 ? strcspn(name, "=") : 0;
		row = len ? find(table, name, len) : NULL;
		if (!row)
			return options_error(table, argv[i], "no such option; --help lists them all", result);
		index = (size_t)(row - table->rows);
		if (!(row->roles & table->role))
			return fail(table, row, "is not an option of this program", result);
		if (result->given[index] && !repeatable(row))
			return fail(table, row, "given twice", result);
		value = NULL;
		if (row->kind == OPTION_FLAG) {
			if (name[len] == '=')
				return fail(table, row, "takes no value", result);
		} else if (name[len] == '=') {
			value = name + len + 1;
		} else if (++i < argc) {
			value = argv[i];
		} else {
			return fail(table, row, "its value is missing", result);
		}
		if (set(table, row, value, values, result))
			return -1;
		result->given[index] = true;
	}
	return 0;
}

int options_refuse(const struct option_table *table, unsigned int protocol, const char *protocol_name,
		   struct option_result *result)
{
	char reason[80];
	size_t i;

	for (i = 0; i < table->count; i++) {
		if (!result->given[i] || (table->rows[i].protocols & protocol))
			continue;
		snprintf(reason, sizeof(reason), "%s has no such option", protocol_name);
		return fail(table, &table->rows[i], reason, result);
	}
	return 0;
}

void options_help(const struct option_table *table, const char *purpose)
{
	const struct option_row *row;
	size_t i;

	printf("%s: %s\n\nOptions (times in nanoseconds, sizes in bytes, all numbers decimal):\n",
	       table->program, purpose);
	for (i = 0; i < table->count; i++) {
		row = &table->rows[i];
		if (!(row->roles & table->role))
			continue;
		printf("  --%s%s%s\n      %s", row->name, row->example ? " " : "",
		       row->example ? row->example : "", row->help);
		if (row->kind == OPTION_NUMBER || row->kind == OPTION_NUMBERS)
			printf(" (%" PRId64 " to %" PRId64 ")", row->min, row->max);
		printf("\n");
	}
}

static void write_timed(struct ndjson *out, const char *key, const struct timed_address_list *list)
{
	unsigned int i;

	ndjson_array_begin(out, key);
	for (i = 0; i < list->count; i++) {
		ndjson_object_begin(out, NULL);
		ndjson_int(out, "at_ns", list->at_ns[i]);
		address_write(out, "address", &list->items[i].any);
		ndjson_object_end(out);
	}
	ndjson_array_end(out);
}

static void write_addresses(struct ndjson *out, const char *key, const struct address_list *list)
{
	unsigned int i;

	ndjson_array_begin(out, key);
	for (i = 0; i < list->count; i++)
		address_write(out, NULL, &list->items[i].any);
	ndjson_array_end(out);
}

static void write_row(struct ndjson *out, const char *key, const struct option_row *row, const void *at)
{
	const struct address_list *list = at;
	const struct number_list *numbers = at;
	unsigned int i;

	switch (row->kind) {
	case OPTION_FLAG:
		ndjson_bool(out, key, *(const bool *)at);
		break;
	case OPTION_WORD:
		ndjson_str(out, key, *(const char *const *)at);
		break;
	case OPTION_NUMBER:
		if (*(const int64_t *)at == OPTION_NOT_GIVEN)
			ndjson_null(out, key);
		else
			ndjson_int(out, key, *(const int64_t *)at);
		break;
	case OPTION_NUMBERS:
		ndjson_array_begin(out, key);
		for (i = 0; i < numbers->count; i++)
			ndjson_int(out, NULL, numbers->items[i]);
		ndjson_array_end(out);
		break;
	case OPTION_ADDRESS:
		if (list->count)
			address_write(out, key, &list->items[0].any);
		else
			ndjson_null(out, key);
		break;
	case OPTION_ADDRESSES:
		write_addresses(out, key, list);
		break;
	case OPTION_TIMED_ADDRESS:
		write_timed(out, key, at);
		break;
	}
}

void options_write(const struct option_table *table, const void *values, struct ndjson *out)
{
	char key[64];
	size_t i, n;

	for (i = 0; i < table->count; i++) {
		if (!(table->rows[i].roles & table->role))
			continue;
		snprintf(key, sizeof(key), "%s", table->rows[i].name);
		for (n = 0; key[n]; n++)
			if (key[n] == '-')
				key[n] = '_';
		write_row(out, key, &table->rows[i], (const char *)values + table->rows[i].offset);
	}
}
