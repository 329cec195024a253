// SPDX-License-Identifier: Apache-2.0
/* What these functions do and promise: schedule.h. */
#include "schedule.h"

#include "config.h"
#include "ndjson.h"

void schedule_init(struct schedule *schedule, const struct config *config)
{
	unsigned int i;

	schedule->interval_ns = config->interval_ns == OPTION_NOT_GIVEN ? 0 : config->interval_ns;
	schedule->first_ns = 0;
	schedule->sizes = config->burst_bytes;
	if (schedule->sizes.count == 0) {
		schedule->sizes.count = 1;
		schedule->sizes.items[0] = config->message_bytes;
	}
	schedule->burst_bytes = 0;
	for (i = 0; i < schedule->sizes.count; i++)
		schedule->burst_bytes += (uint64_t)schedule->sizes.items[i];
}

void schedule_begin(struct schedule *schedule, int64_t start_ns, int64_t now)
{
	int64_t interval = schedule->interval_ns;

	if (interval)
		schedule->first_ns = start_ns + (now - start_ns + interval - 1) / interval * interval;
}

void schedule_write(const struct schedule *schedule, struct ndjson *out)
{
	unsigned int i;

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
	return (uint64_t)schedule->sizes.items[message % schedule->sizes.count];
}

uint64_t schedule_largest(const struct schedule *schedule)
{
	uint64_t largest = 0;
	unsigned int i;

	for (i = 0; i < schedule->sizes.count; i++)
		if ((uint64_t)schedule->sizes.items[i] > largest)
			largest = (uint64_t)schedule->sizes.items[i];
	return largest;
}

uint64_t schedule_messages(const struct schedule *schedule, uint64_t bytes)
{
	uint64_t messages = bytes / schedule->burst_bytes * schedule->sizes.count;
	uint64_t left = bytes % schedule->burst_bytes;
	unsigned int i;

	for (i = 0; left > 0; i++, messages++) {
		if (left <= (uint64_t)schedule->sizes.items[i])
			return messages + 1;
		left -= (uint64_t)schedule->sizes.items[i];
	}
	return messages;
}

uint64_t schedule_due(const struct schedule *schedule, int64_t now)
{
	if (now < schedule->first_ns)
		return 0;
	return ((uint64_t)((now - schedule->first_ns) / schedule->interval_ns) + 1) * schedule->burst_bytes;
}

int64_t schedule_next(const struct schedule *schedule, uint64_t bytes)
{
	return schedule->first_ns + (int64_t)(bytes / schedule->burst_bytes) * schedule->interval_ns;
}
