// SPDX-License-Identifier: Apache-2.0
/*
 * netns-exec: holds the namespaces of one cell on this machine's own kernel, and runs the program `init` of
 * its directory as their first process.
 *
 * User, mount, network, pid, IPC and UTS namespaces: whatever the cell makes is in them, and all of it goes
 * when their first process ends. That process ends with this one, and this one with its parent.
 * Without user namespaces (--root) the others are made by the machine's root, who may give interfaces of the
 * machine to the cell: they come back when its last namespace goes.
 *
 * Exit status: that of `init` (0 completed, 1 failed, 2 timed out; 128 + signal); 77 this machine cannot.
 */
#include "interfaces.h"
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

struct options {
	const char *directory;
	const char *user;
	pid_t parent;
	bool root;
	const char *interfaces[INTERFACES_MAX];
	size_t interface_count;
};

static volatile sig_atomic_t init_pid;

static void parse(struct options *options, int argc, char **argv)
{
	static const struct option table[] = {
	    {"dir", required_argument, NULL, 'd'},
	    {"parent", required_argument, NULL, 'p'},
	    {"user", required_argument, NULL, 'u'},
	    {"root", no_argument, NULL, 'r'},
	    {"interface", required_argument, NULL, 'i'},
	    {"help", no_argument, NULL, 'h'},
	    {0},
	};
	int option;

	while ((option = getopt_long(argc, argv, "", table, NULL)) != -1) {
		switch (option) {
		case 'd':
			options->directory = optarg;
			break;
		case 'u':
			options->user = optarg;
			break;
		case 'p':
			options->parent = (pid_t)number("parent", optarg);
			break;
		case 'r':
			options->root = true;
			break;
		case 'i':
			if (options->interface_count == INTERFACES_MAX)
				die(EXIT_USAGE, "at most %d interfaces", INTERFACES_MAX);
			options->interfaces[options->interface_count++] = optarg;
			break;
		case 'h':
			puts("netns-exec --dir DIR [options]: run DIR/init as the first process of "
			     "namespaces of its own\n"
			     "  --dir DIR     its working directory: init, steps.txt; console.txt is written "
			     "there\n"
			     "  --parent PID  refuse to start unless this is the parent\n"
			     "  --user UID:GID  (root) be this user, whose DIR is, before anything is made\n"
			     "  --root        without a user namespace: as this machine's root\n"
			     "  --interface NAME  (root) take this interface of the machine along; several "
			     "add up");
			exit(0);
		default:
			exit(EXIT_USAGE);
		}
	}
	if (optind < argc)
		die(EXIT_USAGE, "unexpected argument '%s'", argv[optind]);
	if (!options->directory)
		die(EXIT_USAGE, "--dir is required");
	if (options->interface_count && !options->root)
		die(EXIT_USAGE, "--interface needs --root");
}

static void __attribute__((noreturn)) refused(const char *what)
{
	die(EXIT_CANNOT, "user namespaces are refused (%s: %s); `netwarp doctor` says what to do", what,
	    strerror(errno));
}

/* Some systems let every user make a user namespace, but refuse the maps without which it has no root.
 */
static void write_map(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	size_t len = strlen(text);

	if (fd < 0 || write(fd, text, len) != (ssize_t)len || close(fd))
		refused(path);
}

static void enter(const struct options *options)
{
	int others = CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS;
	uid_t user = geteuid();
	gid_t group = getegid();
	char map[64];

	if (options->root) {
		int machine = options->interface_count ? interfaces_open() : -1;

		if (unshare(others))
			die(EXIT_CANNOT, "cannot make namespaces: %s", strerror(errno));
		for (size_t i = 0; i < options->interface_count; i++)
			interface_take(machine, options->interfaces[i]);
		if (machine >= 0)
			close(machine);
		return;
	}
	if (unshare(CLONE_NEWUSER | others))
		refused("unshare");
	snprintf(map, sizeof(map), "0 %u 1\n", user);
	write_map("/proc/self/uid_map", map);
	/* asked for before an ordinary user may map a group */
	write_map("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "0 %u 1\n", group);
	write_map("/proc/self/gid_map", map);
}

/* In the namespaces, as their first process. `alive` is open for writing as long as netns-exec lives. */
static void __attribute__((noreturn)) become_init(int alive)
{
	char *const arguments[] = {"init", NULL}, *const environment[] = {NULL};
	struct pollfd gone = {.fd = alive, .events = POLLIN};

	if (prctl(PR_SET_PDEATHSIG, SIGKILL))
		die(EXIT_CANNOT, "PR_SET_PDEATHSIG: %s", strerror(errno));
	/* the parent ended before we asked: getppid() does not show it, it is in another pid namespace */
	if (poll(&gone, 1, 0) != 0)
		die(1, "the parent has gone");
	close_from(3);
	execve("./init", arguments, environment);
	die(EXIT_CANNOT, "cannot run init: %s", strerror(errno));
}

static void pass_on(int signal_number)
{
	if (init_pid > 0)
		kill(init_pid, signal_number);
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = pass_on};
	struct rlimit no_core = {0, 0};
	struct options options = {0};
	int alive[2], status;
	pid_t pid;

	launch_begin("netns-exec");
	parse(&options, argc, argv);
	die_with_parent(options.parent);
	close_from(3);
	if (chdir(options.directory))
		die(EXIT_CANNOT, "%s: %s", options.directory, strerror(errno));
	if (access("init", X_OK))
		die(EXIT_CANNOT, "%s/init: %s", options.directory, strerror(errno));
	if (setrlimit(RLIMIT_CORE, &no_core))
		die(EXIT_CANNOT, "RLIMIT_CORE: %s", strerror(errno));
	if (pipe(alive))
		die(EXIT_CANNOT, "pipe: %s", strerror(errno));
	if (options.user) {
		drop_root(options.user);
		die_with_parent(options.parent);
	}
	enter(&options);
	open_console();
	pid = fork();
	if (pid < 0)
		die(EXIT_CANNOT, "fork: %s", strerror(errno));
	if (pid == 0) {
		close(alive[1]);
		become_init(alive[0]);
	}
	init_pid = pid;
	/* cell-init ends the cell in good order and says so */
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			die(EXIT_CANNOT, "waitpid: %s", strerror(errno));
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
