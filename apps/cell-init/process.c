// SPDX-License-Identifier: Apache-2.0
#include "process.h"

#include "cell.h"
#include "clock.h"
#include "memory.h"
#include "terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEFAULT_PATH "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* What the child needs; after vfork() it may only make system calls. */
struct child {
	char **argv;
	char **envp;
	int ns_fd;
	const char *stdout_file;
	const char *stderr_file;
	bool terminal;	   /* in place of both files */
	const char *stage; /* where it failed */
	int error;
};

static int open_output(const char *path)
{
	return open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
}

static int child_files(struct child *child)
{
	int in, out, err;

	if (child->terminal) {
		child->stage = "the terminal";
		return terminal_become();
	}
	child->stage = "open of /dev/null";
	in = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (in < 0)
		return -1;
	child->stage = child->stdout_file;
	out = open_output(child->stdout_file);
	if (out < 0)
		return -1;
	child->stage = child->stderr_file;
	err = strcmp(child->stdout_file, child->stderr_file) ? open_output(child->stderr_file) : out;
	if (err < 0)
		return -1;
	child->stage = "dup2";
	return dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 || dup2(err, STDERR_FILENO) < 0 ? -1
													  : 0;
}

/* Returns only when something failed; child->stage and ->error say what. */
static void child_exec(struct child *child)
{
	struct rlimit files;
	sigset_t none;

	child->stage = "setns";
	if (setns(child->ns_fd, CLONE_NEWNET))
		goto out;
	if (child_files(child))
		goto out;
	/* ours does not get through: a real-time task has none (0), and what it forks inherits that */
	child->stage = "PR_SET_TIMERSLACK";
	if (clock_timerslack())
		goto out;
	/* our own raised limit is ours alone: select(2) breaks above 1024 */
	child->stage = "setrlimit";
	if (getrlimit(RLIMIT_NOFILE, &files))
		goto out;
	if (files.rlim_cur > 1024)
		files.rlim_cur = 1024;
	if (setrlimit(RLIMIT_NOFILE, &files))
		goto out;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	child->stage = child->argv[0];
	execvpe(child->argv[0], child->argv, child->envp);
out:
	child->error = errno;
}

/* vfork(): the child borrows our memory until it runs its program, so no pages are copied and it can report.
 */
static pid_t __attribute__((noinline)) start(struct child *child)
{
	pid_t pid = vfork();

	if (pid == 0) {
		child_exec(child);
		_exit(127);
	}
	return pid;
}

/* The values of a `many` key, behind `first` texts, as a NULL-terminated vector. */
static char **vector(const struct step *step, const char *key, char *const *first, size_t firsts)
{
	char **list = calloc(step->count + firsts + 1, sizeof(*list));
	size_t i, n = firsts;

	if (!list)
		return NULL;
	if (firsts)
		memcpy(list, first, firsts * sizeof(*list));
	for (i = 0; i < step->count; i++)
		if (!strcmp(step->values[i].key->name, key))
			list[n++] = step->values[i].data;
	return list;
}

static int prepare_files(struct cell *cell, const struct child *child)
{
	if (make_parents(child->stdout_file))
		return cell_fail_errno(cell, errno, "cannot make the directory of %s", child->stdout_file);
	if (make_parents(child->stderr_file))
		return cell_fail_errno(cell, errno, "cannot make the directory of %s", child->stderr_file);
	return 0;
}

int process_spawn(struct cell *cell, const struct step *step)
{
	char home[4096 + sizeof("HOME=")] = "HOME=", t0[64];
	char *const base[] = {(char[]){DEFAULT_PATH}, home, (char[]){"LANG=C"}, t0};
	struct child child = {.stdout_file = step_text(step, "stdout"),
			      .stderr_file = step_text(step, "stderr")};
	struct process *list, *process;
	int result = -1;
	pid_t pid;

	if (!getcwd(home + 5, sizeof(home) - 5))
		strcpy(home + 5, "/");
	snprintf(t0, sizeof(t0), "NETWARP_T0_REALTIME_NS=%" PRId64, cell->t0_realtime_ns);
	child.ns_fd = NS_FD_BASE + (int)step_int(step, "ns", 0);
	child.argv = vector(step, "arg", NULL, 0);
	child.envp = vector(step, "env", base, cell->t0_known ? 4 : 3);
	list = realloc(cell->processes, (cell->process_count + 1) * sizeof(*list));
	if (list)
		cell->processes = list;
	if (!list || !child.argv || !child.envp) {
		cell_fail(cell, "out of memory");
		goto out;
	}
	child.terminal = step_int(step, "terminal", 0) == 1;
	if (child.terminal ? terminal_prepare(cell) : prepare_files(cell, &child))
		goto out;
	pid = start(&child);
	if (pid < 0) {
		cell_fail_errno(cell, errno, "vfork");
		goto out;
	}
	if (child.error) {
		waitpid(pid, NULL, 0);
		cell_fail_errno(cell, child.error, "cannot start %s: %s", step_text(step, "id"), child.stage);
		goto out;
	}
	process = &cell->processes[cell->process_count++];
	memset(process, 0, sizeof(*process));
	process->id = step_text(step, "id");
	process->stdout_file = child.stdout_file;
	process->pid = pid;
	process->flow = step_int(step, "flow", 0) == 1;
	if (cell->guest && !child.terminal)
		memory_hold(process, (const char *const[]){child.stdout_file, child.stderr_file});
	else
		memory_hold(process, (const char *const[PROCESS_OUTPUTS]){NULL});
	result = 0;
out:
	free(child.argv);
	free(child.envp);
	return result;
}

struct process *process_find(struct cell *cell, const char *id)
{
	size_t i;

	for (i = 0; i < cell->process_count; i++)
		if (!strcmp(cell->processes[i].id, id))
			return &cell->processes[i];
	return NULL;
}

int process_signal(struct cell *cell, const struct step *step)
{
	const struct process *process = process_find(cell, step_text(step, "id"));

	/* One that has ended by itself is no failure: its `exit` record says so. */
	if (process && !process->exited && kill(process->pid, (int)step_int(step, "signal", 0)))
		return cell_fail_errno(cell, errno, "kill %s", process->id);
	return 0;
}

static struct process *find_pid(struct cell *cell, pid_t pid)
{
	size_t i;

	for (i = 0; i < cell->process_count; i++)
		if (cell->processes[i].pid == pid && !cell->processes[i].exited)
			return &cell->processes[i];
	return NULL;
}

int process_reap(struct cell *cell)
{
	struct process *process;
	int64_t now = 0;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == cell->capture_pid) {
			cell->capture_pid = 0;
			cell_fail(cell, "the capture process ended (%s %d)",
				  WIFSIGNALED(status) ? "signal" : "status",
				  WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
			return -1;
		}
		process = find_pid(cell, pid);
		if (!process)
			continue; /* an orphan: as pid 1 we inherit them */
		if (!now)
			now = loop_now(cell);
		process->exited = true;
		process->status = status;
		process->exit_realtime_ns = now;
		memory_release(process);
		if (record_exit(cell, process))
			return -1;
	}
	return 0;
}

size_t process_running(const struct cell *cell, bool flow)
{
	size_t i, count = 0;

	for (i = 0; i < cell->process_count; i++)
		count += !cell->processes[i].exited && (!flow || cell->processes[i].flow);
	return count;
}

void process_signal_all(struct cell *cell, int signal)
{
	size_t i;

	for (i = 0; i < cell->process_count; i++) {
		if (cell->processes[i].exited)
			continue;
		kill(cell->processes[i].pid, signal);
		if (signal == SIGKILL)
			cell->processes[i].killed = true;
	}
}
