// SPDX-License-Identifier: Apache-2.0
/* Documented in memory.h. */
#include "memory.h"

#include "files.h"
#include "record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define KSWAPD	    "kswapd0" /* the kernel's reclaiming thread */
#define KSWAPD_LAST 300	      /* kernel threads have the first process numbers */

static int kswapd_pid; /* 0: not known */
static int64_t kswapd_sleeps_before;
static int64_t least_free_kb, most_cached_kb;

/* The number behind `key` at the beginning of a line, or -1. */
static int64_t number_of(const char *text, const char *key)
{
	const char *line = text;

	while (line) {
		if (!strncmp(line, key, strlen(key)))
			return strtoll(line + strlen(key), NULL, 10);
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	return -1;
}

void memory_look(void)
{
	int64_t free_kb, cached_kb;
	char text[4096];

	files_read("/proc/meminfo", text, sizeof(text));
	free_kb = number_of(text, "MemFree:");
	cached_kb = number_of(text, "Cached:");
	if (!least_free_kb || free_kb < least_free_kb)
		least_free_kb = free_kb;
	if (cached_kb > most_cached_kb)
		most_cached_kb = cached_kb;
}

static int find_kswapd(void)
{
	char path[40], text[32];
	int pid;

	for (pid = 2; pid < KSWAPD_LAST; pid++) {
		snprintf(path, sizeof(path), "/proc/%d/comm", pid);
		if (files_read(path, text, sizeof(text)) > 0 && !strcmp(text, KSWAPD "\n"))
			return pid;
	}
	return 0;
}

/* The number of times that the thread has gone to sleep, which it does after each time it was woken. */
static int64_t kswapd_sleeps(int pid)
{
	char path[40], text[4096];

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	if (!pid || files_read(path, text, sizeof(text)) <= 0)
		return -1;
	return number_of(text, "voluntary_ctxt_switches:");
}

void memory_begin(const struct cell *cell)
{
	if (!cell->guest)
		return;
	kswapd_pid = find_kswapd();
	kswapd_sleeps_before = kswapd_sleeps(kswapd_pid);
}

int memory_record(struct cell *cell)
{
	const struct timespec instant = {.tv_nsec = 1};
	int64_t sleeps;

	if (!cell->guest || !cell->running)
		return 0;
	/* kswapd may have been woken and still wait for the CPU: our priority is higher */
	clock_nanosleep(CLOCK_MONOTONIC, 0, &instant, NULL);
	sleeps = kswapd_sleeps(kswapd_pid);
	memory_look();
	ndjson_begin(&cell->out, "memory");
	if (sleeps < 0 || kswapd_sleeps_before < 0)
		ndjson_null(&cell->out, "kswapd_sleeps");
	else
		ndjson_int(&cell->out, "kswapd_sleeps", sleeps - kswapd_sleeps_before);
	ndjson_int(&cell->out, "least_free_bytes", least_free_kb * 1024);
	ndjson_int(&cell->out, "most_cached_bytes", most_cached_kb * 1024);
	return record_end_line(cell);
}
