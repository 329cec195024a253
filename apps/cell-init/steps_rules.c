// SPDX-License-Identifier: Apache-2.0
/* Documented in steps_rules.h. */
#include "steps_rules.h"

#include "netlink_message.h"

#include <string.h>

/* The steps before the one that is checked, and the rules' state. */
struct rules {
	const struct step *list;
	size_t before;
	enum phase phase;
	int64_t latest_ns; /* `at` of the latest step of the timeline */
	struct step_error *error;
};

static bool has_verb(const struct rules *rules, enum verb verb)
{
	size_t i;

	for (i = 0; i < rules->before; i++)
		if (rules->list[i].verb == verb)
			return true;
	return false;
}

static bool namespace_exists(const struct rules *rules, int index)
{
	size_t i;

	for (i = 0; i < rules->before; i++)
		if (rules->list[i].verb == VERB_NS && rules->list[i].ns.index == index)
			return true;
	return false;
}

static bool program_exists(const struct rules *rules, int index)
{
	size_t i;

	for (i = 0; i < rules->before; i++)
		if (rules->list[i].verb == VERB_BPF && rules->list[i].bpf.index == index)
			return true;
	return false;
}

static bool process_exists(const struct rules *rules, const char *id)
{
	size_t i;

	for (i = 0; i < rules->before; i++)
		if (rules->list[i].verb == VERB_SPAWN && !strcmp(rules->list[i].spawn.id, id))
			return true;
	return false;
}

/* Keys whose type says that an earlier step must have made what they name. */
static int check_references(const struct rules *rules, const struct step *step)
{
	const struct key_spec *key = verb_specs[step->verb].keys;
	const char *field;
	size_t i;

	for (i = 0; i < STEP_KEYS_MAX && key[i].name; i++) {
		field = (const char *)step + key[i].offset;
		if (key[i].type == KEY_NAMESPACE && !namespace_exists(rules, *(const int *)field))
			return step_fail(rules->error, step, key[i].name,
					 "no earlier step makes namespace %d", *(const int *)field);
		if (key[i].type == KEY_PROGRAM && !program_exists(rules, *(const int *)field))
			return step_fail(rules->error, step, key[i].name,
					 "no earlier step loads packet program %d", *(const int *)field);
		if (key[i].type == KEY_PROCESS && !process_exists(rules, *(const char *const *)field))
			return step_fail(rules->error, step, key[i].name, "no earlier step spawns '%.60s'",
					 *(const char *const *)field);
	}
	return 0;
}

static int check_ns(const struct rules *rules, const struct step *step)
{
	const char *name = step->ns.name;
	size_t i;

	if (namespace_exists(rules, step->ns.index))
		return step_fail(rules->error, step, "index", "is made twice");
	if (strchr(name, '/') || name[0] == '.')
		return step_fail(rules->error, step, "name", "'%.60s' cannot be a file name", name);
	for (i = 0; i < rules->before; i++)
		if (rules->list[i].verb == VERB_NS && !strcmp(rules->list[i].ns.name, name))
			return step_fail(rules->error, step, "name", "'%.60s' is made twice", name);
	return 0;
}

static int check_capture(const struct rules *rules, const struct step *step)
{
	size_t i;

	if (has_verb(rules, VERB_CAPTURE_START))
		return step_fail(rules->error, step, NULL, "must stand before capture-start");
	for (i = 0; i < rules->before; i++)
		if (rules->list[i].verb == VERB_CAPTURE &&
		    !strcmp(rules->list[i].capture.file, step->capture.file))
			return step_fail(rules->error, step, "file", "is captured to twice");
	if (step->capture.block_bytes % 4096 || step->capture.block_bytes < step->capture.mtu + 1024)
		return step_fail(rules->error, step, "block_bytes",
				 "must be a multiple of 4096 that holds a packet of the mtu");
	return 0;
}

static int check_spawn(const struct rules *rules, const struct step *step)
{
	size_t i;

	if (process_exists(rules, step->spawn.id))
		return step_fail(rules->error, step, "id", "'%.60s' is spawned twice", step->spawn.id);
	for (i = 0; i < step->spawn.env.count; i++)
		if (!strchr(step->spawn.env.list[i], '='))
			return step_fail(rules->error, step, "env", "'%.60s' has no '='",
					 step->spawn.env.list[i]);
	return 0;
}

static int check_verb(const struct rules *rules, const struct step *step)
{
	const char *why = NULL;

	switch (step->verb) {
	case VERB_SANDBOX:
		if (strcmp(step->sandbox.kind, "guest") && strcmp(step->sandbox.kind, "namespaces"))
			return step_fail(rules->error, step, "kind",
					 "'%.40s' is neither guest nor namespaces", step->sandbox.kind);
		if (rules->before)
			return step_fail(rules->error, step, NULL, "must be the first step");
		return 0;
	case VERB_CLOCK:
		if ((step->clock.t0_realtime_ns != NO_TIME) + (step->clock.t0_after_ready_ns != NO_TIME) +
			(step->clock.t0_file != NULL) !=
		    1)
			return step_fail(rules->error, step, NULL,
					 "takes one of t0_realtime_ns, t0_after_ready_ns and t0_file");
		return 0;
	case VERB_NS:
		return check_ns(rules, step);
	case VERB_NETLINK:
		if (message_check(step->netlink.data.data, step->netlink.data.len, NLM_F_ACK, &why) < 0)
			return step_fail(rules->error, step, "data", "%s", why);
		if (step->netlink.family && step->netlink.netfilter)
			return step_fail(rules->error, step, "netfilter", "has no families");
		return 0;
	case VERB_DUMP:
		if (message_check(step->dump.data.data, step->dump.data.len, NLM_F_DUMP, &why) != 1)
			return step_fail(rules->error, step, "data", "%s", why ? why : "must be one request");
		return 0;
	case VERB_CAPTURE:
		return check_capture(rules, step);
	case VERB_SPAWN:
		return check_spawn(rules, step);
	case VERB_BPF:
		if (program_exists(rules, step->bpf.index))
			return step_fail(rules->error, step, "index", "is loaded twice");
		if (step->bpf.program.len % 8)
			return step_fail(rules->error, step, "program", "is no whole number of instructions");
		if (step->bpf.t0 && step->bpf.state.len < sizeof(int64_t))
			return step_fail(rules->error, step, "state", "has no room for T0");
		return 0;
	case VERB_READY:
		if (!has_verb(rules, VERB_CLOCK))
			return step_fail(rules->error, step, NULL, "needs an earlier clock step");
		return 0;
	default:
		return 0;
	}
}

/* Whether the step may stand in this phase, and its time. */
static int check_phase(struct rules *rules, const struct step *step)
{
	bool timed = step->phase == PHASE_TIMELINE;

	if (!(verb_specs[step->verb].phases & step->phase))
		return step_fail(rules->error, step, NULL, "cannot stand %s",
				 step->phase == PHASE_SETUP ? "before ready"
				 : timed		    ? "between ready and end"
							    : "after end");
	if (verb_specs[step->verb].once && has_verb(rules, step->verb))
		return step_fail(rules->error, step, NULL, "is given twice");
	if (timed && step->at_ns == NO_TIME)
		return step_fail(rules->error, step, "at",
				 "is missing: every step between ready and end needs it");
	if (!timed && step->at_ns != NO_TIME)
		return step_fail(rules->error, step, "at", "only stands between ready and end");
	if (timed && step->at_ns < rules->latest_ns)
		return step_fail(rules->error, step, "at", "%lld is earlier than the step before (%lld)",
				 (long long)step->at_ns, (long long)rules->latest_ns);
	if (timed)
		rules->latest_ns = step->at_ns;
	return 0;
}

int steps_check(struct step *list, size_t count, struct step_error *error)
{
	struct rules rules = {.list = list, .phase = PHASE_SETUP, .latest_ns = NO_TIME, .error = error};
	const struct step *last = count ? &list[count - 1] : NULL;
	struct step *step;

	for (; rules.before < count; rules.before++) {
		step = &list[rules.before];
		step->phase = rules.phase;
		if (check_phase(&rules, step) || check_references(&rules, step) || check_verb(&rules, step))
			return -1;
		if (step->verb == VERB_READY)
			rules.phase = PHASE_TIMELINE;
		else if (step->verb == VERB_END)
			rules.phase = PHASE_AFTER;
	}
	if (!last || list[0].verb != VERB_SANDBOX)
		return step_fail(error, &(struct step){.line = last ? list[0].line : 1, .verb = VERB_COUNT},
				 NULL, "the first step must be sandbox");
	if (rules.phase == PHASE_TIMELINE)
		return step_fail(error, last, NULL, "is the last step: after ready an end step must follow");
	if (has_verb(&rules, VERB_CAPTURE) && !has_verb(&rules, VERB_CAPTURE_START))
		return step_fail(error, last, NULL, "is the last step: capture needs a capture-start");
	return 0;
}
