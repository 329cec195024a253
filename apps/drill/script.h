/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script: reads steps.txt, a packetdrill script compiled by selftests/packetdrill/compile.py
 * (docs/formats.md). Words of a line are separated by one blank; bytes are in hex, "-" are none.
 */
#ifndef NETWARP_DRILL_SCRIPT_H
#define NETWARP_DRILL_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PIECES_MAX    1100 /* of memory, in one call */
#define LINKS_MAX     1100 /* pointers and descriptors in one piece */
#define ARGUMENTS_MAX 6
#define NUMBERS_MAX   12

enum event_kind { EVENT_SHELL, EVENT_IN, EVENT_OUT, EVENT_CALL };

/* From which instant an event's time counts. */
enum anchor {
	ANCHOR_START,	 /* the script's start */
	ANCHOR_NOW,	 /* the end of the event before */
	ANCHOR_PREVIOUS, /* the time that the script gives the event before */
	ANCHOR_NONE	 /* any time is right */
};

struct bytes {
	unsigned char *data;
	size_t length;
};

struct connection {
	bool active;
	uint16_t local_port; /* 0: not known yet */
	uint16_t remote_port;
	bool isn_known;
	uint32_t isn;
	struct stamp *stamps; /* of the script -> the kernel's, of outbound packets */
	size_t stamp_count;
};

struct stamp {
	uint32_t script, live;
};

struct inbound {
	struct bytes header;
	size_t zeros;
	size_t sum_from, sum_at;
	int pseudo;
	size_t local_port_at, ecr_at;
	uint32_t ecr;
	uint32_t minus; /* numbers count from the initial sequence number minus this */
	size_t counts[NUMBERS_MAX];
	size_t count;
};

struct outbound {
	size_t length;
	bool stamped;
	uint32_t stamp;
	int64_t patience_ns; /* after the time at which it is due */
};

struct link {
	size_t offset;
	int to;
};

struct piece {
	struct bytes bytes;
	size_t size;
	struct link *pointers, *fds;
	size_t pointer_count, fd_count;
	bool wanted;
};

struct argument {
	char kind; /* i: a number, f: a script's descriptor, m: a piece of memory */
	int64_t value;
};

struct call {
	long number;
	bool blocks;
	struct argument arguments[ARGUMENTS_MAX];
	size_t argument_count;
	struct piece *pieces;
	size_t piece_count;
	int gives[2];
	size_t give_count;
	int gives_in; /* -1: the result */
};

struct event {
	enum event_kind kind;
	enum anchor anchor;
	int64_t time_ns;
	int connection;
	char *command;
	struct inbound in;
	struct outbound out;
	struct call call;
};

struct script {
	int64_t start_ns, limit_ns;
	uint16_t mss; /* of inbound super-packets, 0: none */
	char *setup, *init, *cleanup;
	struct connection *connections;
	size_t connection_count;
	struct event *events;
	size_t event_count;
};

/* 0, or -1 with the line that cannot be read on standard error. */
int script_read(const char *path, struct script *script);

#endif
