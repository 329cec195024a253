/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steps: the text of steps.txt (docs/formats.md, "Steps") as checked, typed values.
 *
 * One table says which keys a verb takes; whatever is not in it is refused before anything is played. Pure:
 * no system call, so that it is tested and fuzzed on the host.
 */
#ifndef NETWARP_STEPS_H
#define NETWARP_STEPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STEPS_FIRST_LINE "netwarp-steps 1"
#define STEPS_KEYS_MAX	 10
/* `ns` indexes: netlink messages name namespace I as file descriptor NS_FD_BASE + I */
#define NS_FD_BASE 200
#define NS_MAX	   1000

enum verb {
	VERB_SANDBOX,
	VERB_CLOCK,
	VERB_DEADLINE,
	VERB_PROGRESS,
	VERB_MODULE,
	VERB_MEMORY,
	VERB_NS,
	VERB_NETLINK,
	VERB_DUMP,
	VERB_SYSCTL,
	VERB_OFFLOAD,
	VERB_OPERSTATE,
	VERB_CAPTURE,
	VERB_CAPTURE_START,
	VERB_SPAWN,
	VERB_OUTPUT,
	VERB_FILE,
	VERB_SIGNAL,
	VERB_TRACE,
	VERB_PROC,
	VERB_READY,
	VERB_END,
	VERB_COUNT,
};

enum phase {
	PHASE_SETUP = 1,    /* before `ready` */
	PHASE_TIMELINE = 2, /* between `ready` and `end`: `at` is required */
	PHASE_AFTER = 4,    /* after `end` */
};

enum value_kind {
	VALUE_INT,  /* decimal, in [min, max] */
	VALUE_TEXT, /* not empty, no NUL byte */
	VALUE_HEX,  /* bytes */
};

struct key_spec {
	const char *name;
	enum value_kind kind;
	bool required;
	bool many;
	int64_t min;
	int64_t max;
};

struct verb_spec {
	const char *name;
	unsigned int phases;
	struct key_spec keys[STEPS_KEYS_MAX];
};

struct value {
	const struct key_spec *key;
	char *data; /* decoded; texts end in a NUL byte that `len` does not count */
	size_t len;
	int64_t number;
};

#define NO_TIME INT64_MIN

struct step {
	unsigned int line; /* its number, from 1: records call it `step` */
	enum verb verb;
	enum phase phase;
	int64_t at_ns; /* from T0; NO_TIME without `at` */
	struct value *values;
	size_t count;
};

struct steps {
	struct step *list;
	size_t count;
	struct value *values;
	char *text;
	char error[320]; /* after a failure: "steps.txt:12: netlink: key data: ..." */
};

extern const struct verb_spec verb_specs[VERB_COUNT];

/* Parse and check. Returns 0, or -1 with .error filled; steps_free() either way. */
int steps_parse(struct steps *steps, const char *text, size_t len);
void steps_free(struct steps *steps);

/* The first value of that key, or NULL. */
const struct value *step_value(const struct step *step, const char *key);
int64_t step_int(const struct step *step, const char *key, int64_t missing);
const char *step_text(const struct step *step, const char *key);

/* For steps_check.c: fill .error and return -1. `key` may be NULL. */
int steps_error(struct steps *steps, const struct step *step, const char *key, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Rules that span steps: order of phases, namespaces and processes that exist. Called by steps_parse(). */
int steps_check(struct steps *steps);

#endif
