// SPDX-License-Identifier: Apache-2.0
/*
 * traffic-test-driver: the payload's pattern and accounting behind a line protocol, for tests on the
 * host with ASan and UBSan. One command a line on stdin, one answer a line on stdout; bytes are
 * hexadecimal, "-" for none.
 *
 *	fill STREAM MESSAGE OFFSET LENGTH	-> bytes
 *	fill-flow POSITION LENGTH		-> bytes
 *	check STREAM MESSAGE OFFSET BYTES	-> how many are wrong, index of the first
 *	number EXPECTED BYTES			-> number
 *	token N					-> 0; of all that follows
 *	message STREAM END BYTES		-> 0, or 1 stream message offset wrong expected found
 *	bytes BYTES				-> likewise
 *	abandon STREAM				-> 0
 *	summary					-> the accounting as a JSON object; begins anew
 *	list FILE				-> messages, bytes, largest of a file of messages; or why not
 *	whole FILE BYTES			-> messages that are whole in so many bytes
 */
#include "account.h"
#include "message_list.h"
#include "ndjson.h"
#include "pattern.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int usage(const char *line)
{
	fprintf(stderr, "traffic-test-driver: cannot read: %s", line);
	exit(2);
}

/* The bytes of a hexadecimal word, in memory of exactly that size so that ASan sees every step beyond it. */
static uint8_t *unhex(const char *text, size_t *len)
{
	uint8_t *data;
	unsigned int byte;
	size_t i;

	*len = strcmp(text, "-") == 0 ? 0 : strlen(text) / 2;
	data = malloc(*len ? *len : 1);
	if (!data)
		exit(1);
	for (i = 0; i < *len; i++) {
		if (sscanf(text + 2 * i, "%2x", &byte) != 1)
			usage(text);
		data[i] = (uint8_t)byte;
	}
	return data;
}

static void print_hex(const uint8_t *data, size_t len)
{
	size_t i;

	if (len == 0)
		putchar('-');
	for (i = 0; i < len; i++)
		printf("%02x", data[i]);
	putchar('\n');
}

static void print_fault(int result, const struct account_fault *fault)
{
	if (result <= 0) {
		printf("%d\n", result);
		return;
	}
	printf("1 %u %" PRIu64 " %" PRIu64 " %" PRIu64 " %u %u\n", fault->stream, fault->message,
	       fault->offset, fault->bytes, fault->expected, fault->found);
}

static void print_summary(struct account *account)
{
	struct ndjson out;

	fflush(stdout);
	ndjson_init(&out, STDOUT_FILENO);
	ndjson_begin(&out, "summary");
	account_write(account, &out);
	ndjson_end(&out);
	ndjson_free(&out);
	account_free(account);
}

/* Commands of the pattern. False: it is none. */
static bool pattern_command(const char *verb, const uint64_t *n, const char *word)
{
	size_t len, first = 0, wrong;
	uint8_t *data;

	if (strcmp(verb, "fill") == 0 || strcmp(verb, "fill-flow") == 0) {
		len = (size_t)(strcmp(verb, "fill") == 0 ? n[3] : n[1]);
		data = malloc(len ? len : 1);
		if (!data)
			exit(1);
		if (strcmp(verb, "fill") == 0)
			pattern_fill(data, len, (uint16_t)n[0], n[1], n[2]);
		else
			pattern_fill_flow(data, len, n[0]);
		print_hex(data, len);
	} else if (strcmp(verb, "check") == 0) {
		data = unhex(word, &len);
		wrong = pattern_check(data, len, (uint16_t)n[0], n[1], n[2], &first);
		printf("%zu %zu\n", wrong, first);
	} else if (strcmp(verb, "token") == 0) {
		pattern_token(n[0]);
		printf("0\n");
		data = NULL;
	} else if (strcmp(verb, "number") == 0) {
		data = unhex(word, &len);
		printf("%" PRIu64 "\n", pattern_number(data, len, n[0]));
	} else {
		return false;
	}
	free(data);
	return true;
}

static bool account_command(struct account *account, const char *verb, const uint64_t *n, const char *word)
{
	struct account_fault fault;
	uint8_t *data = NULL;
	size_t len;

	if (strcmp(verb, "message") == 0) {
		data = unhex(word, &len);
		print_fault(account_message(account, (uint16_t)n[0], data, len, n[1], &fault), &fault);
	} else if (strcmp(verb, "bytes") == 0) {
		data = unhex(word, &len);
		print_fault(account_bytes(account, data, len, &fault), &fault);
	} else if (strcmp(verb, "abandon") == 0) {
		account_abandon(account, (uint16_t)n[0]);
		printf("0\n");
	} else if (strcmp(verb, "summary") == 0) {
		print_summary(account);
	} else {
		return false;
	}
	free(data);
	return true;
}

/* A file of messages. */
static bool list_command(const char *verb, const char *path, uint64_t bytes)
{
	struct message_list list;
	char reason[300];

	if (strcmp(verb, "list") != 0 && strcmp(verb, "whole") != 0)
		return false;
	if (message_list_read(&list, path, reason, sizeof(reason))) {
		printf("%s\n", reason);
		return true;
	}
	if (strcmp(verb, "whole") == 0)
		printf("%" PRIu64 "\n", message_list_whole(&list, bytes));
	else
		printf("%" PRIu64 " %" PRIu64 " %u\n", list.count,
		       list.count ? list.items[list.count - 1].end : 0, message_list_largest(&list));
	message_list_free(&list);
	return true;
}

int main(void)
{
	struct account account = {0};
	char *line = NULL, *words[5], *rest;
	uint64_t n[4];
	size_t cap = 0;
	int i;

	while (getline(&line, &cap, stdin) > 0) {
		rest = line;
		for (i = 0; i < 5; i++) {
			words[i] = strtok_r(i ? NULL : line, " \n", &rest);
			if (i > 0)
				n[i - 1] = words[i] ? strtoull(words[i], NULL, 10) : 0;
		}
		/* the last word there is holds the bytes, where a command takes any */
		for (i = 4; i > 0 && !words[i]; i--)
			;
		if (!words[0] || (!pattern_command(words[0], n, words[i]) &&
				  !account_command(&account, words[0], n, words[i]) &&
				  !(words[1] && list_command(words[0], words[1], n[1]))))
			usage(line);
		fflush(stdout);
	}
	account_free(&account);
	free(line);
	return 0;
}
