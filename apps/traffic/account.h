/* SPDX-License-Identifier: Apache-2.0 */
/*
 * account: checks and counts the payload that a receiver got. Every byte is compared with the pattern
 * (pattern.h); messages are counted per stream as unique, duplicate, missing and out of order.
 *
 * A byte stream (TCP, MPTCP) is one stream without messages. There the kernel must deliver every byte once
 * and in order, so a lost, repeated or shifted byte is counted as corrupt.
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
	uint64_t next;		  /* highest message number seen + 1 */
	uint64_t unique_bytes;	  /* bytes of complete messages, each message once */
	uint64_t messages;	  /* complete ones, duplicates included */
	uint64_t duplicate_bytes; /* bytes of complete messages whose number was delivered before */
	uint64_t out_of_order;	  /* new messages with a number below the highest seen before */
	uint64_t corrupt_bytes;
	uint64_t before_bytes; /* unique_bytes of earlier connections */
	/* the message of which some pieces have arrived */
	bool partial;
	uint64_t partial_number;
	uint64_t partial_bytes;
};

/* The first wrong byte of a piece of payload. */
struct account_fault {
	uint16_t stream;
	uint64_t message;	 /* 0 in a byte stream */
	uint64_t offset;	 /* in the message; in a byte stream: from the start of the flow */
	uint64_t bytes;		 /* how many bytes of this piece are wrong */
	uint8_t expected, found; /* the first wrong byte: as the pattern has it, as it arrived */
};

struct account {
	struct stream_account *streams;
	size_t count;
	uint64_t unique_bytes; /* of all streams; it grows only when new payload arrives, and flow_received()
				  relies on that */
	uint64_t corrupt_bytes;
	uint64_t complete; /* messages of all streams, each once */
	uint64_t largest_message_bytes;
	bool byte_stream;
};

/*
 * Count payload that arrived: the next `len` bytes of a byte stream, or the next piece of a message of
 * `stream` (`end`: its last piece). Returns 0; 1 when bytes are wrong, with the position in *fault; -1
 * without memory.
 */
int account_bytes(struct account *account, const uint8_t *data, size_t len, struct account_fault *fault);
int account_message(struct account *account, uint16_t stream, const uint8_t *data, size_t len, bool end,
		    struct account_fault *fault);
/*
 * Payload begins anew, as on a connection of its own. What has been counted stays; messages that were missing
 * are lost with the connection.
 */
void account_restart(struct account *account);
/* Forget the pieces of an incomplete message of `stream`: the kernel aborted its partial delivery. */
void account_abandon(struct account *account, uint16_t stream);

/*
 * Write the members unique_bytes ... corrupt_bytes, incomplete_bytes and streams of the receiver's record
 * `summary`.
 */
void account_write(const struct account *account, struct ndjson *out);
void account_free(struct account *account);

#endif
