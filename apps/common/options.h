/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options: parses a program's command line by a table of its options. A row has the option's name, kind,
 * range, roles, protocols, help text and a correct example. Parsing, --help and the record `options` all
 * read it.
 *
 * Options have long names only, `--name value` or `--name=value`. Numbers are decimal, in base units; the
 * unit is part of the name (--start-ns). An option that the role or the protocol does not have is an error.
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

#define NUMBER_LIST_MAX 256 /* more numbers in one option are an error */

struct number_list {
	unsigned int count;
	int64_t items[NUMBER_LIST_MAX];
};

#define TIMED_ADDRESS_MAX 64 /* more repetitions are an error */

struct timed_address_list {
	unsigned int count;
	int64_t at_ns[TIMED_ADDRESS_MAX];
	union address items[TIMED_ADDRESS_MAX];
};

/*
 * One option. `roles` and `protocols` are bit masks that the program defines. `words`: the values that an
 * OPTION_WORD may have, "a|b|c", or NULL for any. `initial`: the value of an OPTION_NUMBER that is not given.
 */
struct option_row {
	const char *name;
	enum option_kind kind;
	unsigned int roles;
	unsigned int protocols;
	size_t offset; /* of the value in the struct that options_parse() fills */
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

#define OPTIONS_MAX 96 /* rows in a table; the size of option_result.given */

/* The options that were given: filled by options_parse(), read by options_refuse(). */
struct option_result {
	bool help;
	bool given[OPTIONS_MAX];
	char message[512]; /* the first error: option, reason and a correct example */
};

/* Set the initial values and read argv into `values`. 0, or -1 with result->message. */
int options_parse(const struct option_table *table, int argc, char **argv, void *values,
		  struct option_result *result);

/*
 * Refuse options that were given but that `protocol` (a mask of one bit) does not have. 0, or -1 with
 * result->message.
 */
int options_refuse(const struct option_table *table, unsigned int protocol, const char *protocol_name,
		   struct option_result *result);

/* Fill result->message: "<program>: --<name>: <reason>; example: ...". Always returns -1. */
int options_error(const struct option_table *table, const char *name, const char *reason,
		  struct option_result *result);

/* Print the purpose and every option of the role on standard output. */
void options_help(const struct option_table *table, const char *purpose);

/*
 * Add a JSON member for every option of the role: its name with '_' for '-', and its value in force; null
 * where none was given.
 */
void options_write(const struct option_table *table, const void *values, struct ndjson *out);

#endif
