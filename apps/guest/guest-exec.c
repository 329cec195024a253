// SPDX-License-Identifier: Apache-2.0
/*
 * guest-exec: executes a User-Mode-Linux kernel that runs the program `init` of one directory.
 *
 * What a guest computes must follow from the kernel, the seed and the directory's contents alone, so it meets
 * the same command line, environment, descriptor numbers and addresses in every run: no path of the machine
 * is among them. Descriptors 3 to 5 are the kernel, seed.so and the directory for the guest's memory; paths
 * name them by number. The guest dies with the process (the thread) that started it, and its host processes
 * die with it (seed.c).
 *
 * Exit status: what the kernel's is (0 after a power-off); 2 wrong arguments, 77 this machine cannot.
 */
#include "capture_slots.h"
#include "cpu.h"
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <unistd.h>

/* 10 s before T0 of virtual time, 1700000000 s */
#define DEFAULT_START_NS UINT64_C(1699999990000000000)
#define DEFAULT_MEMORY	 "256M"

/* of the kernel's command line, in every guest */
#define FIXED_ARGUMENTS 10

enum place { KERNEL_FD = 3, SEED_FD, TMP_FD, CPU_FD, TERMINAL_FD = CPU_FD };

struct options {
	const char *kernel;
	const char *directory;
	const char *memory;
	const char *mode;
	const char *tmp;
	const char *seed_library;
	const char *terminal;
	const char *user;
	const char *capture_slots;
	const char *argument;
	uint64_t seed;
	uint64_t start_ns;
	uint64_t memory_bytes;
	pid_t parent;
	bool seed_given;
	bool virtual;
	bool any_cpu;
	bool no_root;
	bool seccomp;
};

static void usage(void)
{
	puts(
	    "guest-exec --kernel PATH --dir DIR --seed N [options]: run DIR/init in a User-Mode-Linux guest\n"
	    "  --kernel PATH        the guest kernel\n"
	    "  --dir DIR            its working directory: init, steps.txt; console.txt is written there\n"
	    "  --seed N             of all that is random in the guest (unsigned 64 bit)\n"
	    "  --memory SIZE        of the guest, K, M or G (" DEFAULT_MEMORY ")\n"
	    "  --mode virtual|wall  its clock (virtual)\n"
	    "  --start-ns N         first instant of the virtual clock, ns since 1970 (1699999990000000000)\n"
	    "  --tmpdir DIR         where the guest's memory lies (/dev/shm if it is large enough, else "
	    "TMPDIR, /tmp)\n"
	    "  --parent PID         refuse to start unless this is the parent\n"
	    "  --terminal PATH      on the wall clock: the guest's second console is this terminal\n"
	    "  --user UID:GID       (root) be this user, whose DIR is; all else has been opened before\n"
	    "  --no-root            a kernel before 6.12: without root= it would mount no root\n"
	    "  --seccomp            a kernel of 6.16 or later: its programs are not traced (faster)\n"
	    "  --any-cpu            in virtual time, too, the guest runs on every CPU: slower\n"
	    "  --capture-slots FD:FD  captures go through this socket and this memory (capture_slots.h)\n"
	    "  --argument TEXT      one more argument for the kernel (its random numbers follow from it, "
	    "too)\n"
	    "  --seed-library PATH  seed.so (../lib/seed.so from here)");
}

static uint64_t size(const char *text)
{
	static const char units[] = "KMG";
	size_t len = strlen(text);
	const char *unit = len > 1 ? strchr(units, text[len - 1]) : NULL;
	char digits[32];

	if (!unit || len > sizeof(digits))
		die(EXIT_USAGE, "--memory: '%s' is not a size like " DEFAULT_MEMORY, text);
	memcpy(digits, text, len - 1);
	digits[len - 1] = '\0';
	return number("memory", digits) << (10 * (unit - units + 1));
}

static void parse(struct options *options, int argc, char **argv)
{
	static const struct option table[] = {
	    {"kernel", required_argument, NULL, 'k'},
	    {"dir", required_argument, NULL, 'd'},
	    {"seed", required_argument, NULL, 's'},
	    {"memory", required_argument, NULL, 'm'},
	    {"mode", required_argument, NULL, 'c'},
	    {"start-ns", required_argument, NULL, 'n'},
	    {"tmpdir", required_argument, NULL, 't'},
	    {"parent", required_argument, NULL, 'p'},
	    {"any-cpu", no_argument, NULL, 'a'},
	    {"no-root", no_argument, NULL, 'r'},
	    {"seccomp", no_argument, NULL, 'b'},
	    {"seed-library", required_argument, NULL, 'l'},
	    {"terminal", required_argument, NULL, 'i'},
	    {"user", required_argument, NULL, 'u'},
	    {"capture-slots", required_argument, NULL, 'o'},
	    {"argument", required_argument, NULL, 'g'},
	    {"help", no_argument, NULL, 'h'},
	    {0},
	};
	int option;

	while ((option = getopt_long(argc, argv, "", table, NULL)) != -1) {
		switch (option) {
		case 'k':
			options->kernel = optarg;
			break;
		case 'd':
			options->directory = optarg;
			break;
		case 's':
			options->seed = number("seed", optarg);
			options->seed_given = true;
			break;
		case 'm':
			options->memory = optarg;
			break;
		case 'c':
			options->mode = optarg;
			break;
		case 'n':
			options->start_ns = number("start-ns", optarg);
			break;
		case 't':
			options->tmp = optarg;
			break;
		case 'u':
			options->user = optarg;
			break;
		case 'p':
			options->parent = (pid_t)number("parent", optarg);
			break;
		case 'a':
			options->any_cpu = true;
			break;
		case 'r':
			options->no_root = true;
			break;
		case 'b':
			options->seccomp = true;
			break;
		case 'i':
			options->terminal = optarg;
			break;
		case 'o':
			options->capture_slots = optarg;
			break;
		case 'g':
			options->argument = optarg;
			break;
		case 'l':
			options->seed_library = optarg;
			break;
		case 'h':
			usage();
			exit(0);
		default:
			exit(EXIT_USAGE);
		}
	}
	if (optind < argc)
		die(EXIT_USAGE, "unexpected argument '%s'", argv[optind]);
	if (!options->kernel || !options->directory || !options->seed_given)
		die(EXIT_USAGE, "--kernel, --dir and --seed are required");
	if (strcmp(options->mode, "virtual") && strcmp(options->mode, "wall"))
		die(EXIT_USAGE, "--mode: '%s' is neither virtual nor wall", options->mode);
	options->virtual = !strcmp(options->mode, "virtual");
	if (options->virtual && options->terminal)
		die(EXIT_USAGE, "--terminal: nobody types in virtual time; use --mode wall");
	options->memory_bytes = size(options->memory);
}

/* Enough room, and programs may run from there? */
static bool memory_fits(const char *directory, uint64_t bytes, const char **why)
{
	struct statvfs stat;

	*why = "is not there";
	if (statvfs(directory, &stat))
		return false;
	*why = "is mounted noexec";
	if (stat.f_flag & ST_NOEXEC)
		return false;
	*why = "has too little room for the guest's memory";
	return (uint64_t)stat.f_bavail * stat.f_frsize >= bytes;
}

static const char *choose_tmp(const struct options *options)
{
	const char *const choices[] = {options->tmp ? options->tmp : "/dev/shm",
				       options->tmp ? NULL : getenv("TMPDIR"), options->tmp ? NULL : "/tmp"};
	const char *why = "";
	size_t i;

	for (i = 0; i < sizeof(choices) / sizeof(choices[0]); i++)
		if (choices[i] && memory_fits(choices[i], options->memory_bytes, &why))
			return choices[i];
	die(EXIT_CANNOT, "%s %s (%" PRIu64 " bytes): give --tmpdir",
	    options->tmp ? options->tmp : "/dev/shm, TMPDIR, /tmp", why, options->memory_bytes);
}

/* ../lib/seed.so, seen from this program */
static const char *default_library(void)
{
	static char path[PATH_MAX + 32];
	ssize_t len = readlink("/proc/self/exe", path, PATH_MAX - 1);
	char *slash;

	if (len < 0)
		die(EXIT_CANNOT, "/proc/self/exe: %s", strerror(errno));
	path[len] = '\0';
	slash = strrchr(path, '/');
	strcpy(slash, "/../lib/seed.so");
	return path;
}

/* The file behind one fixed descriptor number. */
static void place(const char *path, int flags, int fd)
{
	int opened = open(path, flags);

	if (opened < 0)
		die(EXIT_CANNOT, "cannot open %s: %s", path, strerror(errno));
	if (opened != fd && (dup2(opened, fd) < 0 || close(opened)))
		die(EXIT_CANNOT, "dup2: %s", strerror(errno));
}

/* Gives the two descriptors of --capture-slots their numbers. */
static void place_capture_slots(const char *text)
{
	int from[2], to[2] = {CAPTURE_SOCKET_FD, CAPTURE_MEMORY_FD};
	size_t i;
	char end;

	if (sscanf(text, "%d:%d%c", &from[0], &from[1], &end) != 2)
		die(EXIT_USAGE, "--capture-slots: '%s' is not FD:FD", text);
	/* either may have the number that the other is to have */
	for (i = 0; i < 2; i++)
		from[i] = fcntl(from[i], F_DUPFD, CAPTURE_MEMORY_FD + 1);
	for (i = 0; i < 2; i++)
		if (from[i] < 0 || dup2(from[i], to[i]) < 0)
			die(EXIT_CANNOT, "--capture-slots %s: %s", text, strerror(errno));
}

/* Close all descriptors from `first` on, but for those of --capture-slots. */
static void close_others(const struct options *options, int first)
{
	int fd;

	for (fd = first; options->capture_slots && fd < CAPTURE_SOCKET_FD; fd++)
		close(fd);
	close_from(options->capture_slots ? CAPTURE_MEMORY_FD + 1 : first);
}

/* Gives the descriptors their numbers. Failures are reported before standard error becomes the console. */
static void arrange(const struct options *options)
{
	const char *tmp = choose_tmp(options);

	/* relative paths mean the caller's directory, so they come before chdir(); numbers above 10 are free
	 * again */
	if (options->capture_slots)
		place_capture_slots(options->capture_slots);
	close_others(options, 3);
	place(options->kernel, O_RDONLY, KERNEL_FD);
	place(options->seed_library ? options->seed_library : default_library(), O_RDONLY, SEED_FD);
	place(tmp, O_RDONLY | O_DIRECTORY, TMP_FD);
	if (options->terminal)
		place(options->terminal, O_RDWR | O_NOCTTY, TERMINAL_FD);
	if (chdir(options->directory))
		die(EXIT_CANNOT, "%s: %s", options->directory, strerror(errno));
	if (access("init", X_OK))
		die(EXIT_CANNOT, "%s/init: %s", options->directory, strerror(errno));
}

int main(int argc, char **argv)
{
	struct options options = {.memory = DEFAULT_MEMORY, .mode = "virtual", .start_ns = DEFAULT_START_NS};
	char memory[64], start[64], seed[64];
	/* fb_tunnels=none: no tunl0, gre0, gretap0 in every namespace */
	char *arguments[FIXED_ARGUMENTS + 6] = {"linux",	  memory,     "rootfstype=hostfs",
						"rootflags=/",	  "ro",	      "init=/proc/self/cwd/init",
						"con0=null,fd:1", "con=null", "fb_tunnels=none",
						"quiet"};
	char *environment[6] = {"HOME=/proc/self/cwd", "TMPDIR=/proc/self/fd/5", "LD_PRELOAD=/proc/self/fd/4",
				seed};
	struct rlimit no_core = {0, 0};
	size_t count = FIXED_ARGUMENTS;
	int persona;

	launch_begin("guest-exec");
	parse(&options, argc, argv);
	die_with_parent(options.parent);
	arrange(&options);
	if (options.user) {
		drop_root(options.user);
		die_with_parent(options.parent);
	}
	if (setrlimit(RLIMIT_CORE, &no_core))
		die(EXIT_CANNOT, "RLIMIT_CORE: %s", strerror(errno));
	/* some containers refuse it; captures were equal without it (measured), so it is worth a warning only
	 */
	persona = personality(0xffffffff);
	if (persona < 0 || personality((unsigned long)persona | ADDR_NO_RANDOMIZE) < 0)
		fprintf(stderr, "guest-exec: warning: addresses stay randomised: %s\n", strerror(errno));
	snprintf(memory, sizeof(memory), "mem=%s", options.memory);
	snprintf(start, sizeof(start), "time-travel-start=%" PRIu64, options.start_ns);
	snprintf(seed, sizeof(seed), "NETWARP_SEED=%016" PRIx64, options.seed);
	if (options.capture_slots)
		environment[4] = "NETWARP_CAPTURE_SLOTS=1";
	if (options.virtual) {
		arguments[count++] = "time-travel=inf-cpu";
		arguments[count++] = start;
	} else if (options.terminal) {
		arguments[count++] = "con1=fd:6,fd:6";
	}
	if (options.no_root)
		arguments[count++] = "root=none";
	if (options.argument)
		arguments[count++] = (char *)(uintptr_t)options.argument;
	/* not part of the guest's own command line, which its random generator hashes */
	if (options.seccomp)
		arguments[count++] = "seccomp=on";
	open_console();
	close_others(&options, (options.terminal ? TERMINAL_FD : TMP_FD) + 1);
	if (options.virtual && !options.any_cpu)
		keep_on_one_cpu(CPU_FD);
	fexecve(KERNEL_FD, arguments, environment);
	/* standard error is the console by now */
	die(EXIT_CANNOT, "cannot run %s: %s", options.kernel, strerror(errno));
}
