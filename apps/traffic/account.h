/* SPDX-License-Identifier: Apache-2.0 */
/*
 * account: what a receiver got. Every byte is compared with the pattern; messages are counted per stream as
 * unique, duplicate, missing and out of order.
 *
 * A byte stream (TCP, MPTCP) is one stream without messages; there the kernel owes every byte once and in
 * order, so a lost, repeated or shifted byte shows as corrupt.
 */
#ifndef NETWARP_ACCOUNT_H
#define NETWARP_ACCOUNT_H

#include "ranges.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ndjson;

struct stream_account {
	bool used;
	struct ranges seen;	  /* numbers of complete messages */
	uint64_t next;		  /* one more than the highest number seen */
	uint64_t unique_bytes;	  /* first delivery, complete messages */
	uint64_t messages;	  /* complete ones, duplicates included */
	uint64_t duplicate_bytes; /* of complete messages that had come before */
	uint64_t out_of_order;	  /* new messages with a number below the highest seen before */
	uint64_t corrupt_bytes;
	/* a message that comes in pieces */
	bool partial;
	uint64_t partial_number;
	uint64_t partial_bytes;
};

/* The first wrong byte of a piece of payload. */
struct account_fault {
	uint16_t stream;
	uint64_t message; /* 0 in a byte stream */
	uint64_t offset;  /* in the message; in a byte stream: from the start of the flow */
	uint64_t bytes;	  /* how many bytes of this piece are wrong */
	uint8_t expected, found;
};

struct account {
	struct stream_account *streams;
	size_t count;
	uint64_t unique_bytes; /* of all streams: grows exactly when new payload has arrived */
	uint64_t corrupt_bytes;
	uint64_t largest_message_bytes;
	bool byte_stream;
};

/*
 * Payload arrived: `data` of a byte stream, or a piece of a message (`end`: the piece ends it).
 * 0: fine; 1: wrong bytes, *fault has the place; -1: out of memory.
 */
int account_bytes(struct account *account, const uint8_t *data, size_t len, struct account_fault *fault);
int account_message(struct account *account, uint16_t stream, const uint8_t *data, size_t len, bool end,
		    struct account_fault *fault);
/* The kernel gave up a message of `stream` whose beginning it had delivered (partial delivery aborted). */
void account_abandon(struct account *account, uint16_t stream);

/* The members unique_bytes ... corrupt_bytes, incomplete_bytes and streams of the receiver's summary. */
void account_write(const struct account *account, struct ndjson *out);
void account_free(struct account *account);

#endif
