// SPDX-License-Identifier: Apache-2.0
/* Documented in account.h. */
#include "account.h"

#include "ndjson.h"
#include "pattern.h"

#include <stdlib.h>
#include <string.h>

static struct stream_account *stream_of(struct account *account, uint16_t stream)
{
	struct stream_account *streams;
	size_t count = (size_t)stream + 1;

	if (count > account->count) {
		streams = realloc(account->streams, count * sizeof(*streams));
		if (!streams)
			return NULL;
		memset(streams + account->count, 0, (count - account->count) * sizeof(*streams));
		account->streams = streams;
		account->count = count;
	}
	account->streams[stream].used = true;
	return &account->streams[stream];
}

static void describe(struct account_fault *fault, uint16_t stream, uint64_t message, uint64_t offset,
		     size_t wrong, uint8_t expected, uint8_t found)
{
	fault->stream = stream;
	fault->message = message;
	fault->offset = offset;
	fault->bytes = wrong;
	fault->expected = expected;
	fault->found = found;
}

int account_bytes(struct account *account, const uint8_t *data, size_t len, struct account_fault *fault)
{
	struct stream_account *st = stream_of(account, 0);
	size_t first = 0, wrong;
	uint64_t at;

	if (!st)
		return -1;
	account->byte_stream = true;
	at = st->unique_bytes - st->before_bytes;
	wrong = pattern_check_flow(data, len, at, &first);
	if (wrong) {
		at += first;
		describe(fault, 0, 0, at, wrong,
			 pattern_byte(0, at / PATTERN_MESSAGE_MAX, at % PATTERN_MESSAGE_MAX), data[first]);
	}
	st->unique_bytes += len;
	st->corrupt_bytes += wrong;
	account->unique_bytes += len;
	account->corrupt_bytes += wrong;
	return wrong > 0;
}

/* The message is complete: is it new? */
static int complete(struct account *account, struct stream_account *st)
{
	uint64_t number = st->partial_number, bytes = st->partial_bytes;
	int added = ranges_add(&st->seen, number);

	if (added < 0)
		return -1;
	st->partial = false;
	st->partial_bytes = 0;
	st->messages++;
	if (bytes > account->largest_message_bytes)
		account->largest_message_bytes = bytes;
	if (!added) {
		st->duplicate_bytes += bytes;
		return 0;
	}
	account->complete++;
	st->unique_bytes += bytes;
	account->unique_bytes += bytes;
	if (number >= st->next)
		st->next = number + 1;
	else
		st->out_of_order++;
	return 0;
}

int account_message(struct account *account, uint16_t stream, const uint8_t *data, size_t len, bool end,
		    struct account_fault *fault)
{
	struct stream_account *st = stream_of(account, stream);
	size_t first = 0, wrong;

	if (!st)
		return -1;
	if (!st->partial) {
		st->partial = true;
		st->partial_bytes = 0;
		st->partial_number = pattern_number(data, len, st->next);
	}
	wrong = pattern_check(data, len, stream, st->partial_number, st->partial_bytes, &first);
	if (wrong)
		describe(fault, stream, st->partial_number, st->partial_bytes + first, wrong,
			 pattern_byte(stream, st->partial_number, st->partial_bytes + first), data[first]);
	st->corrupt_bytes += wrong;
	account->corrupt_bytes += wrong;
	st->partial_bytes += len;
	if (end && complete(account, st))
		return -1;
	return wrong > 0;
}

void account_restart(struct account *account)
{
	struct stream_account *st;
	size_t i;

	for (i = 0; i < account->count; i++) {
		st = &account->streams[i];
		st->before_bytes = st->unique_bytes;
		ranges_free(&st->seen);
		st->next = 0;
		account_abandon(account, (uint16_t)i);
	}
}

void account_abandon(struct account *account, uint16_t stream)
{
	if (stream >= account->count)
		return;
	account->streams[stream].partial = false;
	account->streams[stream].partial_bytes = 0;
}

/* All messages but the last are equally long, so a missing one has the length of the largest. */
static uint64_t gap_bytes(const struct account *account, const struct stream_account *st)
{
	return (st->next - st->seen.members) * account->largest_message_bytes;
}

static void write_counts(const struct account *account, const struct stream_account *st, uint64_t gap,
			 struct ndjson *out)
{
	ndjson_uint(out, "unique_bytes", st->unique_bytes);
	if (account->byte_stream)
		ndjson_null(out, "messages");
	else
		ndjson_uint(out, "messages", st->messages);
	ndjson_uint(out, "duplicate_bytes", st->duplicate_bytes);
	ndjson_uint(out, "gap_bytes", gap);
	ndjson_uint(out, "out_of_order", st->out_of_order);
	ndjson_uint(out, "corrupt_bytes", st->corrupt_bytes);
	ndjson_uint(out, "incomplete_bytes", st->partial_bytes);
}

void account_write(const struct account *account, struct ndjson *out)
{
	struct stream_account sum = {.unique_bytes = account->unique_bytes,
				     .corrupt_bytes = account->corrupt_bytes};
	const struct stream_account *st;
	uint64_t gap = 0;
	size_t i;

	for (i = 0; i < account->count; i++) {
		st = &account->streams[i];
		sum.messages += st->messages;
		sum.duplicate_bytes += st->duplicate_bytes;
		sum.out_of_order += st->out_of_order;
		sum.partial_bytes += st->partial_bytes;
		gap += gap_bytes(account, st);
	}
	write_counts(account, &sum, gap, out);
	ndjson_array_begin(out, "streams");
	for (i = 0; i < account->count; i++) {
		st = &account->streams[i];
		if (!st->used)
			continue;
		ndjson_object_begin(out, NULL);
		ndjson_uint(out, "stream", i);
		write_counts(account, st, gap_bytes(account, st), out);
		ndjson_object_end(out);
	}
	ndjson_array_end(out);
}

void account_free(struct account *account)
{
	size_t i;

	for (i = 0; i < account->count; i++)
		ranges_free(&account->streams[i].seen);
	free(account->streams);
	memset(account, 0, sizeof(*account));
}
