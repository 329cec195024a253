// SPDX-License-Identifier: Apache-2.0
/* Documented in schedule.h. */
#include "schedule.h"

#include "config.h"
#include "ndjson.h"

int schedule_init(struct schedule *schedule, const struct config *config, char *reason, size_t size)
{
	bool one = config->streams_out == OPTION_NOT_GIVEN;
	unsigned int i;

	*schedule = (struct schedule){
	    .interval_ns = config->interval_ns == OPTION_NOT_GIVEN ? 0 : config->interval_ns,
	    .sizes = config->burst_bytes,
	    .streams = one ? 1 : (uint64_t)config->streams_out,
	};
	if (schedule->sizes.count == 0) {
		schedule->sizes.count = 1;
		schedule->sizes.items[0] = config->message_bytes;
	}
	for (i = 0; i < schedule->sizes.count; i++)
		schedule->burst_bytes += (uint64_t)schedule->sizes.items[i];
	return config->messages ? message_list_read(&schedule->list, config->messages, reason, size) : 0;
}

void schedule_free(struct schedule *schedule)
{
	message_list_free(&schedule->list);
}

bool schedule_waits(const struct schedule *schedule)
{
	return schedule->list.listed && schedule->list.times >= TIMES_ANSWERS;
}

bool schedule_timed(const struct schedule *schedule)
{
	return schedule->interval_ns || schedule->list.listed;
}

static void begin_list(struct schedule *schedule, int64_t start_ns, int64_t now)
{
	struct message_list *list = &schedule->list;
	uint64_t i;

	if (schedule_waits(schedule)) {
		schedule->known = list->times == TIMES_ASKS && list->count ? 1 : 0;
		if (schedule->known)
			list->items[0].at_ns = now;
		return;
	}
	while (list->times == TIMES_DUE && schedule->left_out < list->count &&
	       start_ns + list->items[schedule->left_out].at_ns < now)
		schedule->left_out++;
	/* times are left out, sizes are not: the receiver cannot know how many there were */
	schedule->known = list->count - schedule->left_out;
	for (i = 0; i < schedule->known; i++)
		list->items[i].at_ns = start_ns + list->items[i + schedule->left_out].at_ns;
}

void schedule_begin(struct schedule *schedule, int64_t start_ns, int64_t now)
{
	int64_t interval = schedule->interval_ns;

	if (schedule->list.listed)
		begin_list(schedule, start_ns, now);
	else if (interval)
		schedule->first_ns = start_ns + (now - start_ns + interval - 1) / interval * interval;
}

void schedule_peer(struct schedule *schedule, uint64_t messages, int64_t now)
{
	struct message *items = schedule->list.items;
	uint64_t known = messages + (schedule->list.times == TIMES_ASKS ? 1 : 0);
	int64_t due_ns;

	if (!schedule_waits(schedule))
		return;
	for (; schedule->known < known && schedule->known < schedule->list.count; schedule->known++) {
		due_ns = now + items[schedule->known].at_ns;
		/* in the order of the list, also where a later one has less to wait */
		if (schedule->known && due_ns < items[schedule->known - 1].at_ns)
			due_ns = items[schedule->known - 1].at_ns;
		items[schedule->known].at_ns = due_ns;
	}
}

static void write_list(const struct schedule *schedule, struct ndjson *out)
{
	ndjson_begin(out, "schedule");
	ndjson_uint(out, "listed", schedule->list.count);
	ndjson_uint(out, "left_out", schedule->left_out);
	if (schedule->known)
		ndjson_int(out, "first_t_ns", schedule->list.items[0].at_ns);
	else
		ndjson_null(out, "first_t_ns");
	ndjson_end(out);
}

void schedule_write(const struct schedule *schedule, struct ndjson *out)
{
	unsigned int i;

	if (schedule->list.listed) {
		write_list(schedule, out);
		return;
	}
	if (!schedule->interval_ns)
		return;
	ndjson_begin(out, "schedule");
	ndjson_int(out, "first_t_ns", schedule->first_ns);
	ndjson_int(out, "interval_ns", schedule->interval_ns);
	ndjson_array_begin(out, "burst_bytes");
	for (i = 0; i < schedule->sizes.count; i++)
		ndjson_int(out, NULL, schedule->sizes.items[i]);
	ndjson_array_end(out);
	ndjson_end(out);
}

uint64_t schedule_size(const struct schedule *schedule, uint64_t message)
{
	if (schedule->list.listed)
		return schedule->list.items[message].bytes;
	return (uint64_t)schedule->sizes.items[message % schedule->sizes.count];
}

uint64_t schedule_largest(const struct schedule *schedule)
{
	uint64_t largest = message_list_largest(&schedule->list); /* 0 of an empty list */
	unsigned int i;

	for (i = 0; !schedule->list.listed && i < schedule->sizes.count; i++)
		if ((uint64_t)schedule->sizes.items[i] > largest)
			largest = (uint64_t)schedule->sizes.items[i];
	return largest ? largest : 1;
}

uint16_t schedule_stream(const struct schedule *schedule, uint64_t message)
{
	if (schedule->list.listed)
		return schedule->list.items[message].stream;
	return (uint16_t)(message % schedule->streams);
}

uint64_t schedule_number(const struct schedule *schedule, uint64_t message)
{
	return schedule->list.listed ? schedule->list.items[message].number : message / schedule->streams;
}

uint64_t schedule_messages(const struct schedule *schedule, uint64_t bytes)
{
	uint64_t messages = bytes / schedule->burst_bytes * schedule->sizes.count;
	uint64_t left = bytes % schedule->burst_bytes;
	unsigned int i;

	if (schedule->list.listed) {
		messages = message_list_whole(&schedule->list, bytes);
		return messages + (messages ? schedule->list.items[messages - 1].end < bytes : bytes > 0);
	}
	for (i = 0; left > 0; i++, messages++) {
		if (left <= (uint64_t)schedule->sizes.items[i])
			return messages + 1;
		left -= (uint64_t)schedule->sizes.items[i];
	}
	return messages;
}

uint64_t schedule_due(struct schedule *schedule, int64_t now)
{
	const struct message *items = schedule->list.items;

	if (schedule->list.listed) {
		while (schedule->due < schedule->known && items[schedule->due].at_ns <= now)
			schedule->due++;
		return schedule->due ? items[schedule->due - 1].end : 0;
	}
	if (now < schedule->first_ns)
		return 0;
	return ((uint64_t)((now - schedule->first_ns) / schedule->interval_ns) + 1) * schedule->burst_bytes;
}

int64_t schedule_next(const struct schedule *schedule, uint64_t bytes)
{
	if (schedule->list.listed)
		return schedule->due < schedule->known ? schedule->list.items[schedule->due].at_ns
						       : INT64_MAX;
	return schedule->first_ns + (int64_t)(bytes / schedule->burst_bytes) * schedule->interval_ns;
}
