// SPDX-License-Identifier: Apache-2.0
/* Documented in heartbeat_list.h. */
#include "heartbeat_list.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define YEARS_100_NS (INT64_C(100) * 366 * 24 * 3600 * INT64_C(1000000000))

static const char *take(struct heartbeat_list *list, const char *line)
{
	const struct heartbeat *before = list->count ? &list->items[list->count - 1] : NULL;
	struct heartbeat *beat = &list->items[list->count];
	long long at_ns;
	char *end;

	errno = 0;
	at_ns = strtoll(line, &end, 10);
	if (line[0] < '0' || line[0] > '9' || errno || at_ns > YEARS_100_NS || *end != ' ' ||
	    (strcmp(end + 1, "kernel") != 0 && !address_parse(end + 1, &beat->to)))
		return "is not TIME_NS ADDRESS or TIME_NS kernel";
	if (before && at_ns < before->at_ns)
		return "is before the line above";
	beat->at_ns = at_ns;
	list->count++;
	return NULL;
}

/* The number of items is that of the lines: the file is read twice. */
static const char *room(struct heartbeat_list *list, FILE *file)
{
	size_t lines = 0;
	int c;

	while ((c = getc(file)) != EOF)
		lines += c == '\n';
	rewind(file);
	if (lines > HEARTBEATS_MAX)
		return "is one heartbeat too many";
	list->items = calloc(lines + 1, sizeof(*list->items));
	return list->items ? NULL : strerror(ENOMEM);
}

int heartbeat_list_read(struct heartbeat_list *list, const char *path, char *reason, size_t size)
{
	FILE *file = fopen(path, "re");
	const char *wrong;
	size_t line_cap = 0;
	char *line = NULL;
	ssize_t n;

	memset(list, 0, sizeof(*list));
	wrong = file ? room(list, file) : strerror(errno);
	while (!wrong && (n = getline(&line, &line_cap, file)) > 0) {
		if (line[n - 1] != '\n') {
			wrong = "does not end";
			break;
		}
		line[n - 1] = '\0';
		wrong = take(list, line);
	}
	if (wrong) {
		snprintf(reason, size, "%s: line %zu %s", path, list->count + 1, wrong);
		heartbeat_list_free(list);
	}
	free(line);
	if (file)
		fclose(file);
	return wrong ? -1 : 0;
}

void heartbeat_list_free(struct heartbeat_list *list)
{
	free(list->items);
	memset(list, 0, sizeof(*list));
}
