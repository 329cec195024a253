// SPDX-License-Identifier: Apache-2.0
/* Documented in step.h. */
#include "step.h"

#include "step_value.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define FOREVER_NS INT64_C(1000000000000000000) /* 31 years: sums of three of these fit in 63 bits */
#define EARLY_NS   INT64_C(1000000000)
#define T_MAX	   INT64_C(4000000000000000000) /* CLOCK_REALTIME, the year 2096 */

/* The field's offset; a compile-time error when it is not of that C type. */
#define FIELD(field, ctype)                                                                                  \
	offsetof(struct step, field) +                                                                       \
	    0 * sizeof(                                                                                      \
		    char[__builtin_types_compatible_p(__typeof__(((struct step *)0)->field), ctype) ? 1      \
												    : -1])

#define NEEDED	   true, 0
#define OPTIONAL   false, 0
#define INITIAL(n) false, n

/* clang-format off */
#define TEXT(name, field, need)       {name, KEY_TEXT, FIELD(field, const char *), need, 0, 0}
#define FILE_NAME(name, field, need)  {name, KEY_FILE, FIELD(field, const char *), need, 0, 0}
#define PROCESS(verb)                 {"id", KEY_PROCESS, FIELD(verb.id, const char *), NEEDED, 0, 0}
#define TEXTS(name, field, need)      {name, KEY_TEXTS, FIELD(field, struct texts), need, 0, 0}
#define BYTES_OF(name, field)         {name, KEY_BYTES, FIELD(field, struct bytes), NEEDED, 0, 0}
#define BYTES(verb)                   BYTES_OF("data", verb.data)
#define FLAG(name, field)             {name, KEY_FLAG, FIELD(field, bool), OPTIONAL, 0, 1}
#define INT(name, field, need, low, high)  {name, KEY_INT, FIELD(field, int), need, low, high}
#define TIME(name, field, need, low)  {name, KEY_TIME, FIELD(field, int64_t), need, low, FOREVER_NS}
#define NS(verb)                      {"ns", KEY_NAMESPACE, FIELD(verb.ns, int), NEEDED, 0, NS_MAX - 1}
#define LOADED(verb)                  {"index", KEY_PROGRAM, FIELD(verb.index, int), NEEDED, 0, BPF_MAX - 1}
#define TIMEOUT(verb)                 TIME("timeout_ns", verb.timeout_ns, NEEDED, 0)
/* before T0 only as far as a program needs to be up in time; the rules say in which phase it is required */
#define AT                            TIME("at", at_ns, INITIAL(NO_TIME), -EARLY_NS)
/* clang-format on */

#define ANY_PHASE (PHASE_SETUP | PHASE_TIMELINE | PHASE_AFTER)

/* clang-format off */
const struct verb_spec verb_specs[VERB_COUNT] = {
	[VERB_SANDBOX] = {"sandbox", PHASE_SETUP, true, {TEXT("kind", sandbox.kind, NEEDED)}},
	[VERB_CLOCK] = {"clock", PHASE_SETUP, true, {
		{"t0_realtime_ns", KEY_TIME, FIELD(clock.t0_realtime_ns, int64_t), INITIAL(NO_TIME), 0, T_MAX},
		TIME("t0_after_ready_ns", clock.t0_after_ready_ns, INITIAL(NO_TIME), 0),
		FILE_NAME("t0_file", clock.t0_file, OPTIONAL)}},
	[VERB_DEADLINE] = {"deadline", PHASE_SETUP, true, {
		TIME("setup_ns", deadline.setup_ns, NEEDED, 1),
		TIME("after_t0_ns", deadline.after_t0_ns, NEEDED, 1)}},
	[VERB_PROGRESS] = {"progress", PHASE_SETUP, true, {
		TIME("every_ns", progress.every_ns, NEEDED, 1),
		TIME("tick_ns", progress.tick_ns, OPTIONAL, 1),
		TIME("late_ns", progress.late_ns, OPTIONAL, 0),
		FILE_NAME("stop", progress.stop, OPTIONAL)}},
	[VERB_MODULE] = {"module", PHASE_SETUP, false, {TEXT("module", module.module, NEEDED)}},
	[VERB_MEMORY] = {"memory", PHASE_SETUP, false, {INT("pages", memory.pages, NEEDED, 1, INT32_MAX / 2)}},
	[VERB_NS] = {"ns", PHASE_SETUP, false, {
		INT("index", ns.index, NEEDED, 0, NS_MAX - 1),
		TEXT("name", ns.name, NEEDED)}},
	[VERB_ADOPT] = {"adopt", PHASE_SETUP, false, {
		NS(adopt), TEXT("iface", adopt.iface, NEEDED), INT("ifindex", adopt.ifindex, NEEDED, 1, INT32_MAX)}},
	[VERB_NETLINK] = {"netlink", ANY_PHASE, false, {
		NS(netlink), BYTES(netlink), TEXT("family", netlink.family, OPTIONAL),
		FLAG("netfilter", netlink.netfilter), AT}},
	[VERB_DUMP] = {"dump", ANY_PHASE, false, {
		NS(dump), TEXT("label", dump.label, NEEDED), BYTES(dump), FLAG("netfilter", dump.netfilter), AT}},
	[VERB_SYSCTL] = {"sysctl", ANY_PHASE, false, {
		NS(sysctl), FILE_NAME("path", sysctl.path, NEEDED), TEXT("value", sysctl.value, NEEDED), AT}},
	[VERB_OFFLOAD] = {"offload", PHASE_SETUP | PHASE_TIMELINE, false, {
		NS(offload), TEXT("iface", offload.iface, NEEDED), AT}},
	[VERB_OPERSTATE] = {"operstate", PHASE_SETUP, false, {
		NS(operstate), INT("ifindex", operstate.ifindex, NEEDED, 1, INT32_MAX), TIMEOUT(operstate),
		FLAG("unknown", operstate.unknown)}},
	[VERB_CAPTURE] = {"capture", PHASE_SETUP, false, {
		NS(capture),
		INT("ifindex", capture.ifindex, NEEDED, 1, INT32_MAX),
		TEXT("iface", capture.iface, NEEDED),
		INT("mtu", capture.mtu, NEEDED, 68, 65535),
		FILE_NAME("file", capture.file, NEEDED),
		INT("block_bytes", capture.block_bytes, INITIAL(256 * 1024), 4096, 1 << 26),
		INT("blocks", capture.blocks, INITIAL(16), 2, 4096)}},
	[VERB_CAPTURE_START] = {"capture-start", PHASE_SETUP, true, {{0}}},
	[VERB_SPAWN] = {"spawn", PHASE_SETUP | PHASE_TIMELINE, false, {
		TEXT("id", spawn.id, NEEDED),
		NS(spawn),
		FILE_NAME("stdout", spawn.stdout_file, NEEDED),
		FILE_NAME("stderr", spawn.stderr_file, NEEDED),
		FLAG("flow", spawn.flow),
		FLAG("terminal", spawn.terminal),
		TEXTS("arg", spawn.arg, NEEDED),
		TEXTS("env", spawn.env, OPTIONAL),
		AT}},
	[VERB_OUTPUT] = {"output", PHASE_SETUP, false, {
		PROCESS(output), TEXT("text", output.text, NEEDED), TIMEOUT(output)}},
	[VERB_FILE] = {"file", PHASE_SETUP, false, {FILE_NAME("path", file.path, NEEDED), TIMEOUT(file)}},
	[VERB_SIGNAL] = {"signal", PHASE_SETUP | PHASE_TIMELINE, false, {
		PROCESS(signal), INT("signal", signal.signal, NEEDED, 1, 64), AT}},
	[VERB_KILL] = {"kill", PHASE_TIMELINE, false, {NS(kill), FLAG("abort", kill.abort), AT}},
	[VERB_TRACE] = {"trace", PHASE_SETUP, true, {
		FILE_NAME("file", trace.file, NEEDED),
		INT("buffer_bytes", trace.buffer_bytes, NEEDED, 4096, 1 << 30),
		TEXT("tcp_filter", trace.tcp_filter, OPTIONAL)}},
	[VERB_PROC] = {"proc", ANY_PHASE, false, {NS(proc), FILE_NAME("path", proc.path, NEEDED), AT}},
	[VERB_BPF] = {"bpf", PHASE_SETUP, false, {
		INT("index", bpf.index, NEEDED, 0, BPF_MAX - 1),
		BYTES_OF("settings", bpf.settings),
		BYTES_OF("state", bpf.state),
		BYTES_OF("program", bpf.program),
		FLAG("t0", bpf.t0)}},
	[VERB_BPF_SETTINGS] = {"bpf-settings", ANY_PHASE, false, {LOADED(bpf_settings), BYTES(bpf_settings), AT}},
	[VERB_BPF_RECORD] = {"bpf-record", ANY_PHASE, false, {LOADED(bpf_record), AT}},
	[VERB_READY] = {"ready", PHASE_SETUP, true, {{0}}},
	[VERB_END] = {"end", PHASE_TIMELINE, true, {
		TIME("at", at_ns, NEEDED, 0),
		FLAG("early", end.early),
		FILE_NAME("file", end.file, OPTIONAL),
		TIME("grace_ns", end.grace_ns, NEEDED, 0)}},
};
/* clang-format on */

int step_fail(struct step_error *error, const struct step *step, const char *key, const char *format, ...)
{
	size_t room = sizeof(error->text), used;
	va_list args;

	used = (size_t)snprintf(error->text, room, "steps.txt:%u: ", step->line);
	if (step->verb != VERB_COUNT)
		used +=
		    (size_t)snprintf(error->text + used, room - used, "%s: ", verb_specs[step->verb].name);
	if (key && used < room)
		used += (size_t)snprintf(error->text + used, room - used, "key %.40s: ", key);
	if (used < room) {
		va_start(args, format);
		vsnprintf(error->text + used, room - used, format, args);
		va_end(args);
	}
	return -1;
}

/* Check a value and store it where its key says. */
static int store(struct step *step, const struct key_spec *key, char *text, struct step_error *error)
{
	void *field = (char *)step + key->offset;
	bool is_text = key->type<KEY_BYTES, is_number = key->type> KEY_BYTES;
	struct value_error why;
	struct bytes value;
	int64_t number = 0;

	if (value_decode(text, &value, &why) || (is_text && value_check_text(&value, &why)) ||
	    (key->type == KEY_FILE && value_check_file(&value, &why)) ||
	    (key->type == KEY_BYTES && value_bytes(&value, &why)) ||
	    (is_number && value_number(&value, key->min, key->max, &number, &why)))
		return step_fail(error, step, key->name, "%s", why.text);
	switch (key->type) {
	case KEY_TEXT:
	case KEY_FILE:
	case KEY_PROCESS:
		*(const char **)field = value.data;
		break;
	case KEY_TEXTS:
		((struct texts *)field)->list[((struct texts *)field)->count++] = value.data;
		break;
	case KEY_BYTES:
		*(struct bytes *)field = value;
		break;
	case KEY_FLAG:
		*(bool *)field = number == 1;
		break;
	case KEY_INT:
	case KEY_NAMESPACE:
	case KEY_PROGRAM:
		*(int *)field = (int)number;
		break;
	case KEY_TIME:
		*(int64_t *)field = number;
		break;
	}
	return 0;
}

/* One "key=value". */
static int decode_pair(struct step *step, char *pair, struct step_error *error)
{
	const struct key_spec *keys = verb_specs[step->verb].keys;
	char *equals = strchr(pair, '=');
	size_t i;

	if (!equals)
		return step_fail(error, step, pair, "has no '='");
	*equals = '\0';
	for (i = 0; i < STEP_KEYS_MAX && keys[i].name; i++) {
		if (strcmp(keys[i].name, pair))
			continue;
		if (keys[i].type != KEY_TEXTS && step->given & 1u << i)
			return step_fail(error, step, pair, "is given twice");
		step->given |= 1u << i;
		return store(step, &keys[i], equals + 1, error);
	}
	return step_fail(error, step, pair, "is unknown here");
}

/* Sets a key's field before its value is read; a list takes `words` texts of the pool. */
static void initialise(struct step *step, const struct key_spec *key, size_t words, char ***pool)
{
	void *field = (char *)step + key->offset;

	if (key->type == KEY_TEXTS) {
		((struct texts *)field)->list = *pool;
		*pool += words;
	} else if (key->type == KEY_TIME) {
		*(int64_t *)field = key->initial;
	} else if (key->type == KEY_INT) {
		*(int *)field = (int)key->initial;
	}
}

int step_decode(struct step *step, char *line, char ***pool, struct step_error *error)
{
	const struct key_spec *keys;
	size_t words = 1, i;
	char *save, *word;
	const char *at;

	step->verb = VERB_COUNT;
	step->at_ns = NO_TIME;
	for (at = line; *at; at++)
		words += *at == ' ';
	word = strtok_r(line, " ", &save);
	for (i = 0; word && i < VERB_COUNT; i++)
		if (!strcmp(word, verb_specs[i].name))
			step->verb = (enum verb)i;
	if (step->verb == VERB_COUNT)
		return step_fail(error, step, NULL, "unknown verb '%.40s'", word ? word : "");
	keys = verb_specs[step->verb].keys;
	for (i = 0; i < STEP_KEYS_MAX && keys[i].name; i++)
		initialise(step, &keys[i], words, pool);
	while ((word = strtok_r(NULL, " ", &save)))
		if (decode_pair(step, word, error))
			return -1;
	for (i = 0; i < STEP_KEYS_MAX && keys[i].name; i++)
		if (keys[i].required && !(step->given & 1u << i))
			return step_fail(error, step, keys[i].name, "is missing");
	return 0;
}
