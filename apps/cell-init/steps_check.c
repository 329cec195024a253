// SPDX-License-Identifier: Apache-2.0
/* Rules that one line alone cannot show. */
#include "netlink_message.h"
#include "steps.h"

#include <string.h>

static const struct step *find(const struct steps *steps, const struct step *before, enum verb verb,
			       const char *key, const char *text)
{
	const struct step *step;

	for (step = steps->list; step < before; step++)
		if (step->verb == verb && (!key || !strcmp(step_text(step, key), text)))
			return step;
	return NULL;
}

static bool ns_exists(const struct steps *steps, const struct step *before, int64_t index)
{
	const struct step *step;

	for (step = steps->list; step < before; step++)
		if (step->verb == VERB_NS && step_int(step, "index", -1) == index)
			return true;
	return false;
}

static bool file_name_ok(const char *path)
{
	return path[0] != '/' && strcmp(path, "..") && strncmp(path, "../", 3) && !strstr(path, "/../") &&
	       (strlen(path) < 3 || strcmp(path + strlen(path) - 3, "/.."));
}

/* A `many` key counts only by its first value here: no path or reference is one. */
static int check_references(struct steps *steps, struct step *step)
{
	static const char *const paths[] = {"stdout", "stderr", "file", "path", "stop"};
	const char *text = step_text(step, "id");
	int64_t ns = step_int(step, "ns", -1);
	size_t i;

	if (ns >= 0 && !ns_exists(steps, step, ns))
		return steps_error(steps, step, "ns", "no earlier step makes namespace %lld", (long long)ns);
	if (text && step->verb == VERB_SPAWN && find(steps, step, VERB_SPAWN, "id", text))
		return steps_error(steps, step, "id", "'%.60s' is spawned twice", text);
	if (text && step->verb != VERB_SPAWN && !find(steps, step, VERB_SPAWN, "id", text))
		return steps_error(steps, step, "id", "no earlier step spawns '%.60s'", text);
	for (i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		text = step_text(step, paths[i]);
		if (text && !file_name_ok(text))
			return steps_error(steps, step, paths[i], "'%.100s' must be relative and without ..",
					   text);
	}
	return 0;
}

static int check_verb(struct steps *steps, struct step *step)
{
	const struct value *data = step_value(step, "data");
	const char *text, *why = NULL;
	size_t i;

	switch (step->verb) {
	case VERB_SANDBOX:
		text = step_text(step, "kind");
		if (strcmp(text, "guest") && strcmp(text, "namespaces"))
			return steps_error(steps, step, "kind", "'%.40s' is neither guest nor namespaces",
					   text);
		if (step != steps->list)
			return steps_error(steps, step, NULL, "must be the first step");
		break;
	case VERB_CLOCK:
		if (step->count != 1)
			return steps_error(steps, step, NULL,
					   "takes either t0_realtime_ns or t0_after_ready_ns");
		break;
	case VERB_NS:
		if (ns_exists(steps, step, step_int(step, "index", -1)))
			return steps_error(steps, step, "index", "is made twice");
		text = step_text(step, "name");
		if (strchr(text, '/') || text[0] == '.')
			return steps_error(steps, step, "name", "'%.60s' cannot be a file name", text);
		if (find(steps, step, VERB_NS, "name", text))
			return steps_error(steps, step, "name", "'%.60s' is made twice", text);
		break;
	case VERB_NETLINK:
		if (message_check(data->data, data->len, NLM_F_ACK, &why) < 0)
			return steps_error(steps, step, "data", "%s", why);
		break;
	case VERB_DUMP:
		if (message_check(data->data, data->len, NLM_F_DUMP, &why) != 1)
			return steps_error(steps, step, "data", "%s", why ? why : "must be one request");
		break;
	case VERB_CAPTURE:
		if (find(steps, step, VERB_CAPTURE, "file", step_text(step, "file")))
			return steps_error(steps, step, "file", "is captured to twice");
		if (step_int(step, "block_bytes", 1 << 18) % 4096 ||
		    step_int(step, "block_bytes", 1 << 18) < step_int(step, "mtu", 0) + 1024)
			return steps_error(steps, step, "block_bytes",
					   "must be a multiple of 4096 that holds a packet of the mtu");
		break;
	case VERB_SPAWN:
		for (i = 0; i < step->count; i++)
			if (!strcmp(step->values[i].key->name, "env") && !strchr(step->values[i].data, '='))
				return steps_error(steps, step, "env", "'%.60s' has no '='",
						   step->values[i].data);
		break;
	default:
		break;
	}
	return 0;
}

/* At most once: these set or begin something for the whole cell. */
static bool is_single(enum verb verb)
{
	return verb == VERB_SANDBOX || verb == VERB_CLOCK || verb == VERB_DEADLINE || verb == VERB_PROGRESS ||
	       verb == VERB_CAPTURE_START || verb == VERB_TRACE || verb == VERB_READY || verb == VERB_END;
}

/* Which phase the step stands in, and whether it may. */
static int check_phase(struct steps *steps, struct step *step, enum phase *phase, int64_t *latest)
{
	step->phase = *phase;
	if (!(verb_specs[step->verb].phases & *phase))
		return steps_error(steps, step, NULL, "cannot stand %s",
				   *phase == PHASE_SETUP      ? "before ready"
				   : *phase == PHASE_TIMELINE ? "between ready and end"
							      : "after end");
	if (is_single(step->verb) && find(steps, step, step->verb, NULL, NULL))
		return steps_error(steps, step, NULL, "is given twice");
	if (*phase == PHASE_TIMELINE && step->at_ns == NO_TIME)
		return steps_error(steps, step, "at",
				   "is missing: every step between ready and end needs it");
	if (*phase != PHASE_TIMELINE && step->at_ns != NO_TIME)
		return steps_error(steps, step, "at", "only stands between ready and end");
	if (*phase == PHASE_TIMELINE && step->at_ns < *latest)
		return steps_error(steps, step, "at", "%lld is earlier than the step before (%lld)",
				   (long long)step->at_ns, (long long)*latest);
	if (*phase == PHASE_TIMELINE)
		*latest = step->at_ns;
	if (step->verb == VERB_READY) {
		if (!find(steps, step, VERB_CLOCK, NULL, NULL))
			return steps_error(steps, step, NULL, "needs an earlier clock step");
		*phase = PHASE_TIMELINE;
	} else if (step->verb == VERB_END) {
		*phase = PHASE_AFTER;
	} else if (step->verb == VERB_CAPTURE && find(steps, step, VERB_CAPTURE_START, NULL, NULL)) {
		return steps_error(steps, step, NULL, "must stand before capture-start");
	}
	return 0;
}

int steps_check(struct steps *steps)
{
	enum phase phase = PHASE_SETUP;
	struct step *step, *last;
	int64_t latest = NO_TIME;
	size_t i;

	for (i = 0; i < steps->count; i++) {
		step = &steps->list[i];
		if (check_phase(steps, step, &phase, &latest) || check_references(steps, step) ||
		    check_verb(steps, step))
			return -1;
	}
	last = steps->count ? &steps->list[steps->count - 1] : NULL;
	if (!last || steps->list[0].verb != VERB_SANDBOX)
		return steps_error(steps,
				   &(struct step){.line = last ? steps->list[0].line : 1, .verb = VERB_COUNT},
				   NULL, "the first step must be sandbox");
	if (phase == PHASE_TIMELINE)
		return steps_error(steps, last, NULL,
				   "is the last step: after ready an end step must follow");
	if (find(steps, steps->list + steps->count, VERB_CAPTURE, NULL, NULL) &&
	    !find(steps, steps->list + steps->count, VERB_CAPTURE_START, NULL, NULL))
		return steps_error(steps, last, NULL, "is the last step: capture needs a capture-start");
	return 0;
}
