// SPDX-License-Identifier: Apache-2.0
/* Documented in report.h. */
#include "report.h"

#include "clock.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ndjson lines;
static int still;

int report_open(void)
{
	int fd = open(DIRECTORY "/drill.ndjson", O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);

	if (fd < 0)
		return -1;
	ndjson_init(&lines, fd);
	still = clock_still_open();
	return still < 0 ? -1 : 0;
}

int64_t report_now_ns(void)
{
	return clock_still_ns(still);
}

struct ndjson *report_begin(const char *record, int event)
{
	pthread_mutex_lock(&lock);
	ndjson_begin(&lines, record);
	if (event >= 0)
		ndjson_int(&lines, "event", event);
	return &lines;
}

void report_end(void)
{
	ndjson_end(&lines);
	pthread_mutex_unlock(&lock);
}

void report_bytes(struct ndjson *out, const void *data, size_t length)
{
	const unsigned char *bytes = data;
	size_t kept = length;

	while (kept && !bytes[kept - 1])
		kept--;
	ndjson_hex(out, "data", data, kept);
	ndjson_uint(out, "length", length);
}

void report_failed(int event, const char *format, ...)
{
	struct ndjson *out = report_begin("failed", event);
	char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	ndjson_str(out, "reason", text);
	report_end();
}
