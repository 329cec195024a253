/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step: one line of steps.txt (docs/formats.md, "Steps"), decoded into the struct of its verb.
 *
 * One table, verb_specs, lists the keys of each verb, their types and ranges, and the member of the struct
 * that each value goes to: the table both checks and decodes. A verb or key that is not in it is refused.
 * No system call: tested and fuzzed on the host. orchestrator/netwarp/testbed/steps.py writes these lines;
 * a new verb or key is added there, here, in phases.c and in docs/formats.md.
 */
#ifndef NETWARP_STEP_H
#define NETWARP_STEP_H

#include "step_value.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STEP_KEYS_MAX 10
#define STEP_LISTS    2 /* a verb has at most 2 keys that may be given several times */
/*
 * Netlink messages name namespace I as file descriptor NS_FD_BASE + I;
 * orchestrator/netwarp/testbed/messages.py has the same two numbers. 200 leaves room for the descriptors
 * that cell-init opens for itself.
 */
#define NS_FD_BASE 200
#define NS_MAX	   1000
/* Netlink messages name program I as file descriptor BPF_FD_BASE + 3 * I; its two maps follow */
#define BPF_FD_BASE (NS_FD_BASE + NS_MAX)
#define BPF_MAX	    500
#define NO_TIME	    INT64_MIN /* the key was not given */

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
	VERB_KILL,
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
	/* exactly one of the three is given; the others are NO_TIME or NULL */
	int64_t t0_realtime_ns;
	int64_t t0_after_ready_ns;
	const char *t0_file; /* holds T0 on this clock, as decimal digits, once somebody has made it */
};

struct step_deadline {
	int64_t setup_ns, after_t0_ns;
};

struct step_progress {
	int64_t every_ns; /* between two marks on the console */
	int64_t tick_ns;  /* between two ticks that measure lateness; 0: no ticks */
	int64_t late_ns;  /* a tick this late counts as late */
	const char *stop; /* the cell ends when this file exists; NULL: none */
};

struct step_module {
	const char *module; /* absolute path of the .ko file */
};

struct step_memory {
	int pages; /* of 4096 bytes */
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
	const char *family; /* of generic netlink; NULL: rtnetlink */
	bool netfilter;	    /* nfnetlink: one batch */
};

struct step_dump {
	int ns;
	const char *label;
	struct bytes data;
	bool netfilter;
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

struct step_kill {
	int ns;
	bool abort;
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
	bool t0; /* its state begins with T0 on the monotonic clock */
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
	unsigned int line; /* number of its line in steps.txt, from 1; records call it `step` */
	enum verb verb;
	enum phase phase;
	unsigned int given; /* bit I: key I of the verb was given */
	int64_t at_ns;	    /* time from T0; NO_TIME without the key `at` */
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
		struct step_kill kill;
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
	int64_t initial;  /* value of a number that is not given */
	int64_t min, max; /* a number outside is refused */
};

struct verb_spec {
	const char *name;
	unsigned int phases; /* the phases it may stand in: a mask of enum phase */
	bool once;	     /* may be given once per cell */
	struct key_spec keys[STEP_KEYS_MAX];
};

extern const struct verb_spec verb_specs[VERB_COUNT];

struct step_error {
	char text[320]; /* "steps.txt:12: netlink: key data: ..." */
};

/* Write "steps.txt:LINE: VERB: key KEY: <format>" into *error; `key` may be NULL. Always returns -1. */
int step_fail(struct step_error *error, const struct step *step, const char *key, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/*
 * Decode a NUL-terminated line, neither empty nor a comment, into *step; the caller has set step->line. The
 * texts in *step point into the line, which must outlive it. *pool points to room for lists of texts, at
 * least STEP_LISTS texts per word of the line; it is moved behind the part that was used. Returns 0, or -1
 * with *error filled.
 */
int step_decode(struct step *step, char *line, char ***pool, struct step_error *error);

#endif
