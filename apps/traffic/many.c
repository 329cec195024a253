// SPDX-License-Identifier: Apache-2.0
/* Documented in many.h. */
#include "many.h"

#include "clock.h"
#include "fibers.h"
#include "pattern.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define WORDS_MAX 128
#define FLOWS_MAX 4096

struct one {
	char *line;
	char *words[WORDS_MAX];
	int count;
	struct config config;
	int status;
};

static int (*run_flow)(struct config *config, int out);
static unsigned int role_of_all;

static void run(void *flow)
{
	struct one *one = flow;
	int out = open(one->words[0], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	one->status = 1;
	if (out < 0) {
		fprintf(stderr, "%s: %s\n", one->words[0], strerror(errno));
		return;
	}
	one->status = config_read(&one->config, role_of_all, one->count, one->words);
	if (one->status < 0) {
		one->config.read_each = true;
		one->status = run_flow(&one->config, out);
	}
	close(out);
}

/* The token of the payload is the process's: it is set anew where another flow goes on. */
static void resumed(void *flow)
{
	static const struct one *last;
	const struct one *one = flow;

	if (one != last && one->config.protocol)
		pattern_token(one->config.token == OPTION_NOT_GIVEN ? 0 : (uint64_t)one->config.token);
	last = one;
}

static void all_wait(void)
{
	(void)!write(STDOUT_FILENO, "{\"record\":\"listening\"}\n", strlen("{\"record\":\"listening\"}\n"));
}

static struct one *read_line(FILE *file, size_t *cap)
{
	struct one *one = calloc(1, sizeof(*one));
	char *word, *rest = NULL;

	if (!one || getline(&one->line, cap, file) <= 0)
		goto none;
	for (word = strtok_r(one->line, " \n", &rest); word; word = strtok_r(NULL, " \n", &rest)) {
		if (one->count == WORDS_MAX - 1)
			goto none;
		one->words[one->count++] = word;
	}
	if (one->count)
		return one;
none:
	if (one)
		free(one->line);
	free(one);
	return NULL;
}

bool many_asked(int argc, char **argv)
{
	return argc == 3 && strcmp(argv[1], "--flows") == 0;
}

int many_run(const char *path, unsigned int role, int (*flow)(struct config *config, int out))
{
	static const struct fibers fibers = {.run = run, .resumed = resumed, .all_wait = all_wait};
	struct one *flows[FLOWS_MAX];
	unsigned int count = 0, i;
	FILE *file = fopen(path, "re");
	struct rlimit files;
	int status = 0;
	size_t cap;

	run_flow = flow;
	role_of_all = role;
	while (file && count < FLOWS_MAX) {
		cap = 0;
		flows[count] = read_line(file, &cap);
		if (!flows[count])
			break;
		count++;
	}
	if (!file || !count || !feof(file)) {
		fprintf(stderr, "--flows %s: no file of flows\n", path);
		return 2;
	}
	fclose(file);
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	if (clock_timerslack() || fibers_run(&fibers, (void *const *)flows, count)) {
		fprintf(stderr, "--flows: %s\n", strerror(errno));
		status = 1;
	}
	for (i = 0; i < count; i++) {
		if (flows[i]->status > status)
			status = flows[i]->status;
		free(flows[i]->line);
		free(flows[i]);
	}
	return status;
}
