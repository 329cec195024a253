/* SPDX-License-Identifier: Apache-2.0 */
/*
 * message_list: a file of messages (--messages, --peer-messages; docs/formats.md, The apps):
 *
 *	due|all|answers|asks
 *	TIME_NS BYTES STREAM
 *	...
 *
 * `due`, `all`: TIME_NS counts from the flow's start and never goes back. `answers`, `asks`: it is the time
 * after the peer's message.
 */
#ifndef NETWARP_MESSAGE_LIST_H
#define NETWARP_MESSAGE_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MESSAGES_MAX 2000000 /* in one file */

enum message_times { TIMES_DUE, TIMES_ALL, TIMES_ANSWERS, TIMES_ASKS };

struct message {
	int64_t at_ns; /* as in the file; schedule.c makes due times of them */
	uint64_t end;  /* bytes of all messages up to and including this one */
	uint32_t bytes;
	uint32_t number; /* in its stream, from 0 */
	uint16_t stream;
};

struct message_list {
	enum message_times times;
	struct message *items;
	uint64_t count;
	bool listed; /* a list was read; it may be empty: no message is due before the end */
};

/* Read `path`. 0, or -1 with the reason, which names the line. */
int message_list_read(struct message_list *list, const char *path, char *reason, size_t size);
void message_list_free(struct message_list *list);

/* The number of messages of a byte stream that are whole in its first `bytes` bytes: the index of the first
 * that is not. */
uint64_t message_list_whole(const struct message_list *list, uint64_t bytes);
uint32_t message_list_largest(const struct message_list *list);

#endif
