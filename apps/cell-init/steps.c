// SPDX-License-Identifier: Apache-2.0
#include "steps.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FOREVER_NS INT64_C(1000000000000000000) /* 31 years: sums of three of these fit in 63 bits */
#define EARLY_NS   INT64_C(1000000000)
#define T_MAX	   INT64_C(4000000000000000000) /* CLOCK_REALTIME, the year 2096 */

#define INT(name, need, low, high)                                                                           \
	{                                                                                                    \
		name, VALUE_INT, need, false, low, high                                                      \
	}
#define TEXT(name, need)                                                                                     \
	{                                                                                                    \
		name, VALUE_TEXT, need, false, 0, 0                                                          \
	}
#define TEXTS(name, need)                                                                                    \
	{                                                                                                    \
		name, VALUE_TEXT, need, true, 0, 0                                                           \
	}
#define HEX(name)                                                                                            \
	{                                                                                                    \
		name, VALUE_HEX, true, false, 0, 0                                                           \
	}
#define NS INT("ns", true, 0, NS_MAX - 1)
/* before T0 only as far as a program needs to be up in time */
#define AT	  INT("at", false, -EARLY_NS, FOREVER_NS)
#define TIMEOUT	  INT("timeout_ns", true, 0, FOREVER_NS)
#define ANY_PHASE (PHASE_SETUP | PHASE_TIMELINE | PHASE_AFTER)

const struct verb_spec verb_specs[VERB_COUNT] = {
    [VERB_SANDBOX] = {"sandbox", PHASE_SETUP, {TEXT("kind", true)}},
    [VERB_CLOCK] = {"clock",
		    PHASE_SETUP,
		    {INT("t0_realtime_ns", false, 0, T_MAX), INT("t0_after_ready_ns", false, 0, FOREVER_NS)}},
    [VERB_DEADLINE] = {"deadline",
		       PHASE_SETUP,
		       {INT("setup_ns", true, 1, FOREVER_NS), INT("after_t0_ns", true, 1, FOREVER_NS)}},
    [VERB_PROGRESS] = {"progress",
		       PHASE_SETUP,
		       {INT("every_ns", true, 1, FOREVER_NS), INT("tick_ns", false, 1, FOREVER_NS),
			INT("late_ns", false, 0, FOREVER_NS), TEXT("stop", false)}},
    [VERB_MODULE] = {"module", PHASE_SETUP, {TEXT("module", true)}},
    [VERB_MEMORY] = {"memory", PHASE_SETUP, {INT("pages", true, 1, INT32_MAX / 2)}},
    [VERB_NS] = {"ns", PHASE_SETUP, {INT("index", true, 0, NS_MAX - 1), TEXT("name", true)}},
    [VERB_NETLINK] = {"netlink", ANY_PHASE, {NS, HEX("data"), TEXT("family", false), AT}},
    [VERB_DUMP] = {"dump", ANY_PHASE, {NS, TEXT("label", true), HEX("data"), AT}},
    [VERB_SYSCTL] = {"sysctl", ANY_PHASE, {NS, TEXT("path", true), TEXT("value", true), AT}},
    [VERB_OFFLOAD] = {"offload", PHASE_SETUP, {NS, TEXT("iface", true)}},
    [VERB_OPERSTATE] = {"operstate", PHASE_SETUP, {NS, INT("ifindex", true, 1, INT32_MAX), TIMEOUT}},
    [VERB_CAPTURE] = {"capture",
		      PHASE_SETUP,
		      {NS, INT("ifindex", true, 1, INT32_MAX), TEXT("iface", true),
		       INT("mtu", true, 68, 65535), TEXT("file", true),
		       INT("block_bytes", false, 4096, 1 << 26), INT("blocks", false, 2, 4096)}},
    [VERB_CAPTURE_START] = {"capture-start", PHASE_SETUP, {{0}}},
    [VERB_SPAWN] = {"spawn",
		    PHASE_SETUP | PHASE_TIMELINE,
		    {TEXT("id", true), NS, TEXT("stdout", true), TEXT("stderr", true),
		     INT("flow", false, 0, 1), INT("terminal", false, 0, 1), TEXTS("arg", true),
		     TEXTS("env", false), AT}},
    [VERB_OUTPUT] = {"output", PHASE_SETUP, {TEXT("id", true), TEXT("text", true), TIMEOUT}},
    [VERB_FILE] = {"file", PHASE_SETUP, {TEXT("path", true), TIMEOUT}},
    [VERB_SIGNAL] = {"signal",
		     PHASE_SETUP | PHASE_TIMELINE,
		     {TEXT("id", true), INT("signal", true, 1, 64), AT}},
    [VERB_TRACE] = {"trace",
		    PHASE_SETUP,
		    {TEXT("file", true), INT("buffer_bytes", true, 4096, 1 << 30),
		     TEXT("tcp_filter", false)}},
    [VERB_PROC] = {"proc", ANY_PHASE, {NS, TEXT("path", true), AT}},
    [VERB_READY] = {"ready", PHASE_SETUP, {{0}}},
    [VERB_END] = {"end",
		  PHASE_TIMELINE,
		  {INT("at", true, 0, FOREVER_NS), INT("early", false, 0, 1),
		   INT("grace_ns", true, 0, FOREVER_NS)}},
};

int steps_error(struct steps *steps, const struct step *step, const char *key, const char *format, ...)
{
	size_t room = sizeof(steps->error), used;
	va_list args;

	used = (size_t)snprintf(steps->error, room, "steps.txt:%u: ", step->line);
	if (step->verb != VERB_COUNT)
		used +=
		    (size_t)snprintf(steps->error + used, room - used, "%s: ", verb_specs[step->verb].name);
	if (key && used < room)
		used += (size_t)snprintf(steps->error + used, room - used, "key %.40s: ", key);
	if (used < room) {
		va_start(args, format);
		vsnprintf(steps->error + used, room - used, format, args);
		va_end(args);
	}
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

static bool is_plain(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
	       (c && strchr("_./:,@+-", c));
}

/* Undo %XX in place. Returns the length, or -1 with the place of what is wrong in *bad. */
static ptrdiff_t percent_decode(char *data, size_t len, size_t *bad)
{
	size_t from, to = 0;
	int high, low;

	for (from = 0; from < len; to++) {
		*bad = from;
		if (is_plain(data[from])) {
			data[to] = data[from++];
			continue;
		}
		if (data[from] != '%' || len - from < 3)
			return -1;
		high = hex_digit(data[from + 1]);
		low = hex_digit(data[from + 2]);
		if (high < 0 || low < 0)
			return -1;
		data[to] = (char)(high << 4 | low);
		from += 3;
	}
	return (ptrdiff_t)to;
}

static int decode_int(struct steps *steps, const struct step *step, struct value *value)
{
	const struct key_spec *key = value->key;
	size_t sign = value->len && value->data[0] == '-', i;
	int64_t number = 0;

	for (i = sign; i < value->len; i++) {
		if (value->data[i] < '0' || value->data[i] > '9' || number > key->max / 10)
			break;
		number = number * 10 + (value->data[i] - '0');
	}
	if (sign)
		number = -number;
	if (value->len == sign || i < value->len || number < key->min || number > key->max)
		return steps_error(steps, step, key->name, "'%.40s' is not a whole number from %lld to %lld",
				   value->data, (long long)key->min, (long long)key->max);
	value->number = number;
	return 0;
}

static int decode_hex(struct steps *steps, const struct step *step, struct value *value)
{
	size_t i;
	int high, low;

	if (value->len == 0 || value->len % 2)
		return steps_error(steps, step, value->key->name, "%zu hex digits do not make whole bytes",
				   value->len);
	for (i = 0; i < value->len / 2; i++) {
		high = hex_digit(value->data[2 * i]);
		low = hex_digit(value->data[2 * i + 1]);
		if (high < 0 || low < 0)
			return steps_error(steps, step, value->key->name, "not a hex digit in byte %zu", i);
		value->data[i] = (char)(high << 4 | low);
	}
	value->len /= 2;
	return 0;
}

static int decode(struct steps *steps, const struct step *step, struct value *value)
{
	const char *name = value->key->name;
	ptrdiff_t len;
	size_t bad = 0;

	len = percent_decode(value->data, value->len, &bad);
	if (len < 0)
		return steps_error(steps, step, name, "byte %zu of the value must be written %%XX", bad);
	value->len = (size_t)len;
	value->data[len] = '\0';
	switch (value->key->kind) {
	case VALUE_INT:
		return decode_int(steps, step, value);
	case VALUE_HEX:
		return decode_hex(steps, step, value);
	case VALUE_TEXT:
		break;
	}
	if (value->len == 0)
		return steps_error(steps, step, name, "is empty");
	if (memchr(value->data, '\0', value->len))
		return steps_error(steps, step, name, "contains a NUL byte");
	return 0;
}

static const struct key_spec *find_key(enum verb verb, const char *name)
{
	const struct key_spec *key = verb_specs[verb].keys;
	size_t i;

	for (i = 0; i < STEPS_KEYS_MAX && key[i].name; i++)
		if (!strcmp(key[i].name, name))
			return &key[i];
	return NULL;
}

/* One "key=value", already NUL-terminated. */
static int parse_pair(struct steps *steps, struct step *step, char *pair, struct value *value)
{
	char *equals = strchr(pair, '=');

	if (!equals)
		return steps_error(steps, step, pair, "has no '='");
	*equals = '\0';
	value->key = find_key(step->verb, pair);
	if (!value->key)
		return steps_error(steps, step, pair, "is unknown here");
	if (!value->key->many && step_value(step, pair))
		return steps_error(steps, step, pair, "is given twice");
	value->data = equals + 1;
	value->len = strlen(equals + 1);
	return decode(steps, step, value);
}

/* One line, NUL-terminated, neither empty nor a comment. Returns values used, or -1. */
static int parse_line(struct steps *steps, struct step *step, char *line)
{
	const struct key_spec *key;
	char *save, *word;
	size_t i;

	word = strtok_r(line, " ", &save);
	for (i = 0; word && i < VERB_COUNT; i++)
		if (!strcmp(word, verb_specs[i].name))
			step->verb = (enum verb)i;
	if (step->verb == VERB_COUNT)
		return steps_error(steps, step, NULL, "unknown verb '%.40s'", word ? word : "");
	while ((word = strtok_r(NULL, " ", &save))) {
		if (parse_pair(steps, step, word, &step->values[step->count]))
			return -1;
		step->count++;
	}
	for (i = 0; i < STEPS_KEYS_MAX; i++) {
		key = &verb_specs[step->verb].keys[i];
		if (key->name && key->required && !step_value(step, key->name))
			return steps_error(steps, step, key->name, "is missing");
	}
	step->at_ns = step_int(step, "at", NO_TIME);
	return 0;
}

static size_t count_char(const char *text, size_t len, char c)
{
	size_t i, n = 0;

	for (i = 0; i < len; i++)
		n += text[i] == c;
	return n;
}

int steps_parse(struct steps *steps, const char *text, size_t len)
{
	struct step here = {.line = 1, .verb = VERB_COUNT}, *step;
	size_t used = 0;
	char *line, *end;

	memset(steps, 0, sizeof(*steps));
	steps->text = malloc(len + 1);
	/* a line is at most one step, a blank at most one value */
	steps->list = calloc(count_char(text, len, '\n') + 1, sizeof(*steps->list));
	steps->values = calloc(count_char(text, len, ' ') + 1, sizeof(*steps->values));
	if (!steps->text || !steps->list || !steps->values)
		return steps_error(steps, &here, NULL, "out of memory");
	memcpy(steps->text, text, len);
	steps->text[len] = '\0';
	if (memchr(steps->text, '\0', len))
		return steps_error(steps, &here, NULL, "the file contains a NUL byte");
	for (line = steps->text; line; line = end ? end + 1 : NULL, here.line++) {
		end = strchr(line, '\n');
		if (end)
			*end = '\0';
		if (here.line == 1) {
			if (strcmp(line, STEPS_FIRST_LINE))
				return steps_error(steps, &here, NULL, "the first line must be '%s'",
						   STEPS_FIRST_LINE);
			continue;
		}
		if (*line == '\0' || *line == '#')
			continue;
		step = &steps->list[steps->count];
		*step = here;
		step->values = steps->values + used;
		if (parse_line(steps, step, line))
			return -1;
		used += step->count;
		steps->count++;
	}
	return steps_check(steps);
}

void steps_free(struct steps *steps)
{
	free(steps->text);
	free(steps->list);
	free(steps->values);
	memset(steps, 0, sizeof(*steps));
}

const struct value *step_value(const struct step *step, const char *key)
{
	size_t i;

	for (i = 0; i < step->count; i++)
		if (!strcmp(step->values[i].key->name, key))
			return &step->values[i];
	return NULL;
}

int64_t step_int(const struct step *step, const char *key, int64_t missing)
{
	const struct value *value = step_value(step, key);

	return value ? value->number : missing;
}

const char *step_text(const struct step *step, const char *key)
{
	const struct value *value = step_value(step, key);

	return value ? value->data : NULL;
}
