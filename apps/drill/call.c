// SPDX-License-Identifier: Apache-2.0
/* Documented in call.h. */
#include "call.h"

#include "guest.h"
#include "report.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FDS_MAX 1024

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t done = PTHREAD_COND_INITIALIZER;
static bool busy;
static int live_fds[FDS_MAX];
static bool known_fds[FDS_MAX];

struct task {
	const struct call *call;
	int event;
	long arguments[ARGUMENTS_MAX];
	unsigned char **memory;
};

/* A number that the script never got stands for itself: such a call fails as the script expects. */
static int live_fd(int64_t script)
{
	return script >= 0 && script < FDS_MAX && known_fds[script] ? live_fds[script] : (int)script + 100000;
}

static void learn_fd(int script, int live)
{
	if (script < 0 || script >= FDS_MAX)
		return;
	known_fds[script] = true;
	live_fds[script] = live;
}

static void *memory_of(size_t count, size_t size)
{
	void *memory = calloc(count, size);

	if (!memory) {
		fputs("drill: out of memory\n", stderr);
		guest_leave();
	}
	return memory;
}

static void prepare(struct task *task)
{
	const struct call *call = task->call;
	size_t i, j;

	task->memory = memory_of(call->piece_count + 1, sizeof(*task->memory));
	for (i = 0; i < call->piece_count; i++) {
		/* at least one byte between two pieces */
		task->memory[i] = memory_of(1, call->pieces[i].size + 1);
		if (call->pieces[i].bytes.length)
			memcpy(task->memory[i], call->pieces[i].bytes.data, call->pieces[i].bytes.length);
	}
	for (i = 0; i < call->piece_count; i++) {
		const struct piece *piece = &call->pieces[i];

		for (j = 0; j < piece->pointer_count; j++)
			memcpy(task->memory[i] + piece->pointers[j].offset,
			       &task->memory[piece->pointers[j].to], sizeof(void *));
		for (j = 0; j < piece->fd_count; j++) {
			int fd = live_fd(piece->fds[j].to);

			memcpy(task->memory[i] + piece->fds[j].offset, &fd, sizeof(fd));
		}
	}
	for (i = 0; i < call->argument_count; i++) {
		const struct argument *argument = &call->arguments[i];

		task->arguments[i] = argument->kind == 'm'   ? (long)task->memory[argument->value]
				     : argument->kind == 'f' ? live_fd(argument->value)
							     : (long)argument->value;
	}
}

static void learn(const struct task *task, long result)
{
	const struct call *call = task->call;
	int live[2];
	size_t i;

	if (result < 0)
		return;
	live[0] = (int)result;
	if (call->gives_in >= 0)
		memcpy(live, task->memory[call->gives_in], sizeof(live));
	for (i = 0; i < call->give_count; i++)
		learn_fd(call->gives[i], live[i]);
}

static void perform(const struct task *task)
{
	const struct call *call = task->call;
	const long *a = task->arguments;
	struct ndjson *out;
	long result;
	int error;
	size_t i;

	errno = 0;
	result = syscall(call->number, a[0], a[1], a[2], a[3], a[4], a[5]);
	error = errno;
	learn(task, result);
	/* the script's own numbers: the kernel gives what is free here */
	if (result >= 0 && call->give_count && call->gives_in < 0)
		result = call->gives[0];
	out = report_begin("returned", task->event);
	ndjson_int(out, "t_ns", report_now_ns());
	ndjson_int(out, "result", result);
	ndjson_int(out, "error", result < 0 ? error : 0);
	ndjson_array_begin(out, "memory");
	for (i = 0; i < call->piece_count; i++)
		if (call->pieces[i].wanted) {
			ndjson_object_begin(out, NULL);
			ndjson_uint(out, "piece", i);
			report_bytes(out, task->memory[i], call->pieces[i].size);
			ndjson_object_end(out);
		}
	ndjson_array_end(out);
	report_end();
}

static void *beside(void *data)
{
	perform(data);
	pthread_mutex_lock(&lock);
	busy = false;
	pthread_cond_signal(&done);
	pthread_mutex_unlock(&lock);
	return NULL;
}

void call_wait(void)
{
	pthread_mutex_lock(&lock);
	while (busy)
		pthread_cond_wait(&done, &lock);
	pthread_mutex_unlock(&lock);
}

/*
 * A thread that goes before this one: it runs as soon as it is there, until it waits, and as soon as what it
 * waits for has come. So nothing has to sleep until it is blocked, which would take virtual time.
 */
static int start_beside(struct task *task)
{
	const struct sched_param first = {.sched_priority = 1};
	pthread_attr_t attributes;
	pthread_t thread;
	int error;

	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attributes, SCHED_FIFO);
	pthread_attr_setschedparam(&attributes, &first);
	error = pthread_create(&thread, &attributes, beside, task);
	pthread_attr_destroy(&attributes);
	return error;
}

void call_make(const struct call *call, int event)
{
	struct task *task = memory_of(1, sizeof(*task));
	int error;

	call_wait();
	*task = (struct task){.call = call, .event = event};
	prepare(task);
	if (!call->blocks) {
		perform(task);
		return;
	}
	busy = true;
	error = start_beside(task);
	if (error) {
		busy = false;
		report_failed(event, "cannot start a thread for a call that blocks: %s", strerror(error));
	}
}
