/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step: one line of steps.txt (docs/formats.md, "Steps"), decoded into the struct of its verb.
 *
 * One table lists the keys of each verb, their types, and where in the struct each value goes: it both
 * checks and decodes. What is not in the table is refused. Pure: no system call.
 */
#ifndef NETWARP_STEP_H
#define NETWARP_STEP_H

#include "step_value.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STEP_KEYS_MAX 10
#define STEP_LISTS    2 /* keys of a verb that may be given several times, at most */
/* `ns` indexes: netlink messages name namespace I as file descriptor NS_FD_BASE + I */
#define NS_FD_BASE 200
#define NS_MAX	   1000
/* `bpf` indexes: netlink messages name program I as file descriptor BPF_FD_BASE + 3 * I; its maps follow */
#define BPF_FD_BASE (NS_FD_BASE + NS_MAX)
#define BPF_MAX	    500
#define NO_TIME	    INT64_MIN

enum verb {
	VERB_SANDBOX,
	VERB_CLOCK,
	VERB_DEADLINE,
	VERB_PROGRESS,
	VERB_MODULE,
	VERB_MEMORY,
	VERB_NS,
	VERB_ADOPT,
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
	VERB_BPF,
	VERB_BPF_SETTINGS,
	VERB_BPF_RECORD,
	VERB_READY,
	VERB_END,
	VERB_COUNT,
};

enum phase {
	PHASE_SETUP = 1,    /* before `ready` */
	PHASE_TIMELINE = 2, /* between `ready` and `end`: `at` is required */
	PHASE_AFTER = 4,    /* after `end` */
};

/* The values of a key that may be given several times, in their order; .list[count] is NULL. */
struct texts {
	char **list;
	size_t count;
};

struct step_sandbox {
	const char *kind;
};

struct step_clock {
	/* one of them is given; the others are NO_TIME or NULL */
	int64_t t0_realtime_ns;
	int64_t t0_after_ready_ns;
	const char *t0_file; /* holds T0 on this clock, as decimal digits, once somebody has made it */
};

struct step_deadline {
	int64_t setup_ns, after_t0_ns;
};

struct step_progress {
	int64_t every_ns;
	int64_t tick_ns; /* 0: no ticks */
	int64_t late_ns;
	const char *stop; /* NULL: none */
};

struct step_module {
	const char *module;
};

struct step_memory {
	int pages;
};

struct step_ns {
	int index;
	const char *name;
};

struct step_adopt {
	int ns, ifindex;
	const char *iface;
};

struct step_netlink {
	int ns;
	struct bytes data;
	const char *family; /* NULL: rtnetlink */
};

struct step_dump {
	int ns;
	const char *label;
	struct bytes data;
};

struct step_sysctl {
	int ns;
	const char *path, *value;
};

struct step_offload {
	int ns;
	const char *iface;
};

struct step_operstate {
	int ns, ifindex;
	int64_t timeout_ns;
	bool unknown; /* will do, too: drivers that never say have it */
};

struct step_capture {
	int ns, ifindex;
	const char *iface, *file;
	int mtu, block_bytes, blocks;
};

struct step_spawn {
	const char *id;
	int ns;
	const char *stdout_file, *stderr_file;
	bool flow, terminal;
	struct texts arg, env;
};

struct step_output {
	const char *id, *text;
	int64_t timeout_ns;
};

struct step_file {
	const char *path;
	int64_t timeout_ns;
};

struct step_signal {
	const char *id;
	int signal;
};

struct step_trace {
	const char *file;
	int buffer_bytes;
	const char *tcp_filter; /* NULL: no tracepoint of TCP */
};

struct step_proc {
	int ns;
	const char *path;
};

struct step_bpf {
	int index;
	struct bytes settings, state, program;
};

struct step_bpf_settings {
	int index;
	struct bytes data;
};

struct step_bpf_record {
	int index;
};

struct step_end {
	int64_t grace_ns;
	bool early;
	const char *file; /* NULL: none */
};

struct step {
	unsigned int line; /* its number, from 1: records call it `step` */
	enum verb verb;
	enum phase phase;
	unsigned int given; /* a bit for each key of the verb */
	int64_t at_ns;	    /* from T0; NO_TIME without `at` */
	union {
		struct step_sandbox sandbox;
		struct step_clock clock;
		struct step_deadline deadline;
		struct step_progress progress;
		struct step_module module;
		struct step_memory memory;
		struct step_ns ns;
		struct step_adopt adopt;
		struct step_netlink netlink;
		struct step_dump dump;
		struct step_sysctl sysctl;
		struct step_offload offload;
		struct step_operstate operstate;
		struct step_capture capture;
		struct step_spawn spawn;
		struct step_output output;
		struct step_file file;
		struct step_signal signal;
		struct step_trace trace;
		struct step_proc proc;
		struct step_bpf bpf;
		struct step_bpf_settings bpf_settings;
		struct step_bpf_record bpf_record;
		struct step_end end;
	};
};

enum key_type {
	KEY_TEXT,      /* const char *: not empty, no NUL byte */
	KEY_FILE,      /* KEY_TEXT: a file's name, relative and without ".." */
	KEY_PROCESS,   /* KEY_TEXT: the id of a process that an earlier step spawns */
	KEY_TEXTS,     /* struct texts: may be given several times */
	KEY_BYTES,     /* struct bytes: hexadecimal digits */
	KEY_FLAG,      /* bool: 0 or 1 */
	KEY_INT,       /* int in [min, max] */
	KEY_NAMESPACE, /* KEY_INT: the index of a namespace that an earlier step makes */
	KEY_PROGRAM,   /* KEY_INT: the index of a packet program that an earlier step loads */
	KEY_TIME,      /* int64_t in [min, max], nanoseconds */
};

struct key_spec {
	const char *name;
	enum key_type type;
	size_t offset; /* of the value in struct step */
	bool required;
	int64_t initial; /* of a number that is not given */
	int64_t min, max;
};

struct verb_spec {
	const char *name;
	unsigned int phases;
	bool once; /* sets or begins something for the whole cell */
	struct key_spec keys[STEP_KEYS_MAX];
};

extern const struct verb_spec verb_specs[VERB_COUNT];

struct step_error {
	char text[320]; /* "steps.txt:12: netlink: key data: ..." */
};

/* Fill *error; `key` may be NULL. Always returns -1. */
int step_fail(struct step_error *error, const struct step *step, const char *key, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/*
 * Decode a line, NUL-terminated, neither empty nor a comment, into *step, whose .line is set. Values stay in
 * the line. `*pool`: room for the lists of texts, at least STEP_LISTS texts a word; moved behind what was
 * used. Returns 0, or -1 with *error filled.
 */
int step_decode(struct step *step, char *line, char ***pool, struct step_error *error);

#endif
