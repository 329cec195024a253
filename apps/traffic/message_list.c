// SPDX-License-Identifier: Apache-2.0
/* Documented in message_list.h. */
#include "message_list.h"

#include "pattern.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define YEARS_100_NS (INT64_C(100) * 366 * 24 * 3600 * INT64_C(1000000000))
#define STREAMS	     65536

static const char *const words[] = {
    [TIMES_DUE] = "due", [TIMES_ALL] = "all", [TIMES_ANSWERS] = "answers", [TIMES_ASKS] = "asks"};

/* A decimal number of at most `max`, and the character behind it. */
static bool number(const char **at, char behind, int64_t max, int64_t *value)
{
	char *end;

	if (**at < '0' || **at > '9')
		return false;
	errno = 0;
	*value = strtoll(*at, &end, 10);
	if (errno || *value > max || *end != behind)
		return false;
	*at = end + (behind ? 1 : 0);
	return true;
}

static const char *take(struct message_list *list, const char *line, uint32_t *next)
{
	const struct message *before = list->count ? &list->items[list->count - 1] : NULL;
	struct message *message = &list->items[list->count];
	int64_t at_ns, bytes, stream;
	const char *at = line;

	if (!number(&at, ' ', YEARS_100_NS, &at_ns) ||
	    !number(&at, ' ', (int64_t)PATTERN_MESSAGE_MAX, &bytes) ||
	    !number(&at, '\0', STREAMS - 1, &stream) || bytes == 0)
		return "is not TIME_NS BYTES STREAM";
	if (list->times <= TIMES_ALL && before && at_ns < before->at_ns)
		return "is due before the line above";
	message->at_ns = at_ns;
	message->bytes = (uint32_t)bytes;
	message->stream = (uint16_t)stream;
	message->number = next[stream]++;
	message->end = (before ? before->end : 0) + (uint64_t)bytes;
	list->count++;
	return NULL;
}

static const char *take_times(struct message_list *list, const char *line)
{
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(line, words[i]) == 0) {
			list->times = (enum message_times)i;
			return NULL;
		}
	return "is not due, all, answers or asks";
}

static bool room(struct message_list *list, uint64_t *cap)
{
	uint64_t more = *cap ? 2 * *cap : 256;
	struct message *items;

	if (list->count < *cap)
		return true;
	items = realloc(list->items, more * sizeof(*items));
	if (!items)
		return false;
	list->items = items;
	*cap = more;
	return true;
}

int message_list_read(struct message_list *list, const char *path, char *reason, size_t size)
{
	FILE *file = fopen(path, "re");
	uint32_t *next = calloc(STREAMS, sizeof(*next));
	const char *wrong = NULL;
	uint64_t cap = 0, lines = 0;
	size_t line_cap = 0;
	char *line = NULL;
	ssize_t n;

	memset(list, 0, sizeof(*list));
	if (!file)
		wrong = strerror(errno);
	else if (!next)
		wrong = strerror(ENOMEM);
	while (!wrong && (n = getline(&line, &line_cap, file)) > 0) {
		lines++;
		if (line[n - 1] != '\n')
			wrong = "does not end";
		line[n - 1] = '\0';
		if (!wrong && strlen(line) != (size_t)n - 1)
			wrong = "has a zero byte";
		if (!wrong && lines == 1)
			wrong = take_times(list, line);
		else if (!wrong && list->count >= MESSAGES_MAX)
			wrong = "is one message too many";
		else if (!wrong)
			wrong = room(list, &cap) ? take(list, line, next) : strerror(ENOMEM);
	}
	if (!wrong && !lines)
		wrong = "is missing";
	if (wrong)
		snprintf(reason, size, "%s: line %" PRIu64 " %s", path, lines, wrong);
	list->listed = !wrong;
	free(line);
	free(next);
	if (file)
		fclose(file);
	if (wrong)
		message_list_free(list);
	return wrong ? -1 : 0;
}

void message_list_free(struct message_list *list)
{
	free(list->items);
	memset(list, 0, sizeof(*list));
}

uint64_t message_list_whole(const struct message_list *list, uint64_t bytes)
{
	uint64_t low = 0, high = list->count, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (list->items[middle].end <= bytes)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

uint32_t message_list_largest(const struct message_list *list)
{
	uint32_t largest = 0;
	uint64_t i;

	for (i = 0; i < list->count; i++)
		if (list->items[i].bytes > largest)
			largest = list->items[i].bytes;
	return largest;
}
