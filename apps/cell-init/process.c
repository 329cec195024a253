// SPDX-License-Identifier: Apache-2.0
/* Documented in process.h. */
#include "process.h"

#include "child.h"
#include "files.h"
#include "progress.h"
#include "record.h"
#include "terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEFAULT_PATH "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

static struct process *processes;
static size_t process_count;

static struct {
	pid_t pid; /* 0: none */
	int (*ended)(struct cell *cell, int status);
} adopted;

/* Environment: `base` and behind it `env`, NULL-terminated. */
static char **environment(char *const *base, size_t base_count, const struct texts *env)
{
	char **list = calloc(base_count + env->count + 1, sizeof(*list));

	if (!list)
		return NULL;
	memcpy(list, base, base_count * sizeof(*list));
	if (env->count)
		memcpy(list + base_count, env->list, env->count * sizeof(*list));
	return list;
}

static int prepare_files(struct cell *cell, const struct child *child)
{
	if (files_make_parents(child->stdout_file))
		return cell_fail_errno(cell, errno, "cannot make the directory of %s", child->stdout_file);
	if (files_make_parents(child->stderr_file))
		return cell_fail_errno(cell, errno, "cannot make the directory of %s", child->stderr_file);
	return 0;
}

/* Opened so that process_drop_outputs() can drop what the program has written. */
static void hold_outputs(struct process *process, const struct child *child)
{
	process->output_fd[0] = open(child->stdout_file, O_WRONLY | O_CLOEXEC);
	process->output_fd[1] = open(child->stderr_file, O_WRONLY | O_CLOEXEC);
}

static void release_outputs(struct process *process)
{
	size_t i;

	for (i = 0; i < PROCESS_OUTPUTS; i++) {
		if (process->output_fd[i] < 0)
			continue;
		files_drop_pages(process->output_fd[i]);
		close(process->output_fd[i]);
		process->output_fd[i] = -1;
	}
}

int process_spawn(struct cell *cell, const struct step_spawn *step)
{
	char home[4096 + sizeof("HOME=")] = "HOME=", t0[64];
	char *const base[] = {(char[]){DEFAULT_PATH}, home, (char[]){"LANG=C"}, t0};
	struct child child = {.argv = step->arg.list,
			      .ns_fd = NS_FD_BASE + step->ns,
			      .stdout_file = step->stdout_file,
			      .stderr_file = step->stderr_file,
			      .terminal = step->terminal};
	struct process *list, *process;
	int result = -1;
	pid_t pid;

	if (!getcwd(home + 5, sizeof(home) - 5))
		strcpy(home + 5, "/");
	snprintf(t0, sizeof(t0), "NETWARP_T0_REALTIME_NS=%" PRId64, cell->t0_realtime_ns);
	child.envp = environment(base, cell->t0_known ? 4 : 3, &step->env);
	list = realloc(processes, (process_count + 1) * sizeof(*list));
	if (list)
		processes = list;
	if (!list || !child.envp) {
		cell_fail(cell, "out of memory");
		goto out;
	}
	if (child.terminal ? terminal_prepare(cell) : prepare_files(cell, &child))
		goto out;
	pid = child_start(&child);
	if (pid < 0) {
		cell_fail_errno(cell, errno, "vfork");
		goto out;
	}
	if (child.error) {
		waitpid(pid, NULL, 0);
		cell_fail_errno(cell, child.error, "cannot start %s: %s", step->id, child.stage);
		goto out;
	}
	process = &processes[process_count++];
	*process = (struct process){.id = step->id,
				    .stdout_file = step->stdout_file,
				    .output_fd = {-1, -1},
				    .pid = pid,
				    .flow = step->flow};
	if (cell->guest && !child.terminal)
		hold_outputs(process, &child);
	result = 0;
out:
	free(child.envp);
	return result;
}

const struct process *process_find(const char *id)
{
	size_t i;

	for (i = 0; i < process_count; i++)
		if (!strcmp(processes[i].id, id))
			return &processes[i];
	return NULL;
}

int process_signal(struct cell *cell, const struct step_signal *step)
{
	const struct process *process = process_find(step->id);

	/* One that has ended by itself is no failure: its record `exit` shows that. */
	if (process && !process->exited && kill(process->pid, step->signal))
		return cell_fail_errno(cell, errno, "kill %s", process->id);
	return 0;
}

void process_adopt(pid_t pid, int (*ended)(struct cell *cell, int status))
{
	adopted.pid = pid;
	adopted.ended = ended;
}

static int64_t cpu_ns(const struct rusage *usage)
{
	int64_t us = (usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * INT64_C(1000000);

	return (us + usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) * 1000;
}

static int record_exit(struct cell *cell, const struct process *process)
{
	ndjson_begin(&cell->out, "exit");
	ndjson_str(&cell->out, "id", process->id);
	if (WIFEXITED(process->status)) {
		ndjson_int(&cell->out, "status", WEXITSTATUS(process->status));
		ndjson_null(&cell->out, "signal");
	} else {
		ndjson_null(&cell->out, "status");
		ndjson_int(&cell->out, "signal", WTERMSIG(process->status));
	}
	ndjson_bool(&cell->out, "killed", process->killed);
	record_t(cell, "t_ns", process->exit_realtime_ns);
	if (progress_has_ticks()) /* in virtual time computing takes none */
		ndjson_int(&cell->out, "cpu_ns", process->cpu_ns);
	return record_end_line(cell);
}

static int take_exit(struct cell *cell, struct process *process, int status, const struct rusage *usage,
		     int64_t now)
{
	process->exited = true;
	process->status = status;
	process->cpu_ns = cpu_ns(usage);
	process->exit_realtime_ns = now;
	release_outputs(process);
	return record_exit(cell, process);
}

static struct process *find_pid(pid_t pid)
{
	size_t i;

	for (i = 0; i < process_count; i++)
		if (processes[i].pid == pid && !processes[i].exited)
			return &processes[i];
	return NULL;
}

int process_reap(struct cell *cell)
{
	struct process *process;
	struct rusage usage;
	int64_t now = 0;
	int status;
	pid_t pid;

	while ((pid = wait4(-1, &status, WNOHANG, &usage)) > 0) {
		if (pid == adopted.pid)
			return adopted.ended(cell, status);
		process = find_pid(pid);
		if (!process)
			continue; /* an orphan: as pid 1 we inherit them */
		if (!now)
			now = cell_now(cell);
		if (take_exit(cell, process, status, &usage, now))
			return -1;
	}
	return 0;
}

bool process_is_adopted(pid_t pid)
{
	return pid == adopted.pid;
}

bool process_any_flow(void)
{
	size_t i;

	for (i = 0; i < process_count; i++)
		if (processes[i].flow)
			return true;
	return false;
}

size_t process_running(bool flow)
{
	size_t i, count = 0;

	for (i = 0; i < process_count; i++)
		count += !processes[i].exited && (!flow || processes[i].flow);
	return count;
}

void process_signal_all(int signal)
{
	size_t i;

	for (i = 0; i < process_count; i++) {
		if (processes[i].exited)
			continue;
		kill(processes[i].pid, signal);
		if (signal == SIGKILL)
			processes[i].killed = true;
	}
}

void process_kill_all(struct cell *cell)
{
	struct rusage usage;
	int status;
	size_t i;

	process_signal_all(SIGKILL);
	for (i = 0; i < process_count; i++)
		if (!processes[i].exited && wait4(processes[i].pid, &status, 0, &usage) == processes[i].pid)
			take_exit(cell, &processes[i], status, &usage, cell_now(cell));
}

void process_drop_outputs(void)
{
	size_t p, i;

	for (p = 0; p < process_count; p++)
		for (i = 0; i < PROCESS_OUTPUTS; i++)
			if (processes[p].output_fd[i] >= 0)
				files_drop_pages(processes[p].output_fd[i]);
}
