// SPDX-License-Identifier: Apache-2.0
#include "memory.h"

#include "cell.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define KSWAPD	    "kswapd0"
#define KSWAPD_LAST 300 /* kernel threads have the first process numbers */
/* Marks (each a virtual second) between two looks at the programs' outputs: a system call a file. */
#define OUTPUT_MARKS 16

void memory_hold(struct process *process, const char *const *outputs)
{
	size_t i;

	for (i = 0; i < PROCESS_OUTPUTS; i++)
		process->output_fd[i] = outputs[i] ? open(outputs[i], O_WRONLY | O_CLOEXEC) : -1;
}

void memory_release(struct process *process)
{
	size_t i;

	for (i = 0; i < PROCESS_OUTPUTS; i++) {
		if (process->output_fd[i] < 0)
			continue;
		memory_forget(process->output_fd[i]);
		close(process->output_fd[i]);
		process->output_fd[i] = -1;
	}
}

/* A small file of /proc as text; false when there is none. */
static bool slurp(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = -1;

	if (fd >= 0) {
		n = read(fd, text, size - 1);
		close(fd);
	}
	text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

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

/* The page cache at its largest, free memory at its least, as far as it was looked at. */
static void look(struct cell *cell)
{
	int64_t free_kb, cached_kb;
	char text[4096];

	slurp("/proc/meminfo", text, sizeof(text));
	free_kb = number_of(text, "MemFree:");
	cached_kb = number_of(text, "Cached:");
	if (!cell->free_least_kb || free_kb < cell->free_least_kb)
		cell->free_least_kb = free_kb;
	if (cached_kb > cell->cached_most_kb)
		cell->cached_most_kb = cached_kb;
}

void memory_mark(struct cell *cell)
{
	size_t p, i;

	if (!cell->guest || ++cell->memory_marks % OUTPUT_MARKS)
		return;
	look(cell); /* before: this is the most that is kept */
	for (p = 0; p < cell->process_count; p++)
		for (i = 0; i < PROCESS_OUTPUTS; i++)
			if (cell->processes[p].output_fd[i] >= 0)
				memory_forget(cell->processes[p].output_fd[i]);
}

static int find_kswapd(void)
{
	char path[40], text[32];
	int pid;

	for (pid = 2; pid < KSWAPD_LAST; pid++) {
		snprintf(path, sizeof(path), "/proc/%d/comm", pid);
		if (slurp(path, text, sizeof(text)) && !strcmp(text, KSWAPD "\n"))
			return pid;
	}
	return 0;
}

/* How often it has gone to sleep: once more whenever it was woken. */
static int64_t kswapd_sleeps(int pid)
{
	char path[40], text[4096];

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	if (!pid || !slurp(path, text, sizeof(text)))
		return -1;
	return number_of(text, "voluntary_ctxt_switches:");
}

void memory_begin(struct cell *cell)
{
	if (!cell->guest)
		return;
	cell->kswapd_pid = find_kswapd();
	cell->kswapd_sleeps = kswapd_sleeps(cell->kswapd_pid);
}

int memory_record(struct cell *cell)
{
	const struct timespec instant = {.tv_nsec = 1};
	int64_t sleeps;

	if (!cell->guest || !cell->running)
		return 0;
	/* kswapd may have been woken and still wait for the CPU, which we outrank */
	clock_nanosleep(CLOCK_MONOTONIC, 0, &instant, NULL);
	sleeps = kswapd_sleeps(cell->kswapd_pid);
	look(cell);
	ndjson_begin(&cell->out, "memory");
	if (sleeps < 0 || cell->kswapd_sleeps < 0)
		ndjson_null(&cell->out, "kswapd_sleeps");
	else
		ndjson_int(&cell->out, "kswapd_sleeps", sleeps - cell->kswapd_sleeps);
	ndjson_int(&cell->out, "least_free_bytes", cell->free_least_kb * 1024);
	ndjson_int(&cell->out, "most_cached_bytes", cell->cached_most_kb * 1024);
	return record_end_line(cell);
}
