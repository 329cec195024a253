// SPDX-License-Identifier: Apache-2.0
/* Documented in child.h. */
#include "child.h"

#include "clock.h"
#include "terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static int open_output(const char *path)
{
	return open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
}

static int open_files(struct child *child)
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
static void run(struct child *child)
{
	struct rlimit files;
	sigset_t none;

	child->stage = "setns";
	if (setns(child->ns_fd, CLONE_NEWNET))
		goto out;
	if (open_files(child))
		goto out;
	/* a real-time task, as we are, has no timer slack (0), and its children inherit that */
	child->stage = "PR_SET_TIMERSLACK";
	if (clock_timerslack())
		goto out;
	/* not our own raised limit: select(2) breaks above 1024 */
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

pid_t __attribute__((noinline)) child_start(struct child *child)
{
	pid_t pid = vfork();

	if (pid == 0) {
		run(child);
		_exit(127);
	}
	return pid;
}
