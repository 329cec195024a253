/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options: one table describes every option of a program: its name, kind, range, roles and protocols, its
 * help and a correct example. Parsing, --help and the report of the values in force all read that table.
 *
 * Long names only, `--name value` or `--name=value`; numbers are decimal and in base units, the unit is part
 * of the name. An option that the role or the protocol does not have is refused, not ignored.
 */
#ifndef NETWARP_OPTIONS_H
#define NETWARP_OPTIONS_H

#include "address.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ndjson;

enum option_kind {
	OPTION_FLAG,	     /* bool */
	OPTION_WORD,	     /* const char *, NULL when not given */
	OPTION_NUMBER,	     /* int64_t, OPTION_NOT_GIVEN when not given */
	OPTION_NUMBERS,	     /* struct number_list, N,N,... */
	OPTION_ADDRESSES,    /* struct address_list, the option may be repeated */
	OPTION_ADDRESS,	     /* struct address_list with at most one item */
	OPTION_TIMED_ADDRESS /* struct timed_address_list, NS,ADDRESS, the option may be repeated */
};

#define OPTION_NOT_GIVEN INT64_C(-1)

#define NUMBER_LIST_MAX 64

struct number_list {
	unsigned int count;
	int64_t items[NUMBER_LIST_MAX];
};

#define TIMED_ADDRESS_MAX 64

struct timed_address_list {
	unsigned int count;
	int64_t at_ns[TIMED_ADDRESS_MAX];
	union address items[TIMED_ADDRESS_MAX];
};

/*
 * One option. `roles` and `protocols` are bit masks of the program's own making. `words`: the values a WORD
 * may have, "a|b|c", or NULL for any. `initial` is a NUMBER's value when the option is not given.
 */
struct option_row {
	const char *name;
	enum option_kind kind;
	unsigned int roles;
	unsigned int protocols;
	size_t offset; /* of the value in the program's struct */
	int64_t min, max;
	int64_t initial;
	const char *words;
	const char *help;
	const char *example;
};

struct option_table {
	const char *program;
	unsigned int role;
	const struct option_row *rows;
	size_t count;
};

#define OPTIONS_MAX 96

/* What was given: filled by options_parse(), read by options_refuse(). */
struct option_result {
	bool help;
	bool given[OPTIONS_MAX];
	char message[512]; /* of the first error: the option, the reason, a correct example */
};

/* Set the initial values and read argv into `values`. 0, or -1 with result->message. */
int options_parse(const struct option_table *table, int argc, char **argv, void *values,
		  struct option_result *result);

/* Refuse what was given but does not belong to `protocol` (a mask of one bit). 0, or -1 with result->message.
 */
int options_refuse(const struct option_table *table, unsigned int protocol, const char *protocol_name,
		   struct option_result *result);

/* Fill result->message: "<program>: --<name>: <reason>; example: ...". Always returns -1. */
int options_error(const struct option_table *table, const char *name, const char *reason,
		  struct option_result *result);

/* Print every option of the role on `stream`. */
void options_help(const struct option_table *table, const char *purpose);

/* A member for every option of the role, its name with '_' for '-'; null where it is not given. */
void options_write(const struct option_table *table, const void *values, struct ndjson *out);

#endif
