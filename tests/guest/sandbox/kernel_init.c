/* First program of the guest in tests/guest/sandbox/test_kernel.py: prints a line of JSON about its kernel.
 */
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
/* Last: it asks for sys/socket.h without saying so. */
#include <linux/sctp.h>

static int run(const char *line)
{
	char text[256], *argv[32], *rest = strcpy(text, line);
	int argc = 0, status = -1;
	while ((argv[argc] = strsep(&rest, " ")))
		argc++;
	pid_t pid = fork();
	if (pid == 0) {
		execv(argv[0], argv);
		_exit(127);
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int main(void)
{
	char line[256];
	struct timespec tick, before, after;
	struct utsname name;
	mount("proc", "/proc", "proc", 0, 0);
	mount("sysfs", "/sys", "sysfs", 0, 0);
	mount("none", "/mnt", "hostfs", 0, "/proc/self/cwd");
	mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, 0);
	uname(&name);
	clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
	clock_gettime(CLOCK_MONOTONIC, &before);
	sleep(100000);
	clock_gettime(CLOCK_MONOTONIC, &after);
	printf("@{\"release\": \"%s\", \"version\": \"%s\", \"tick_ns\": %ld, \"slept_s\": %ld, "
	       "\"sctp\": %d, \"mptcp\": %d, \"packet\": %d, \"schedulers\": %d, \"modules\": %d, \"hwrng\": "
	       "%d, \"sctp_probe\": %d",
	       name.release, name.version, tick.tv_nsec, (long)(after.tv_sec - before.tv_sec),
	       socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP) >= 0, socket(AF_INET, SOCK_STREAM, 262) >= 0,
	       socket(AF_PACKET, SOCK_RAW, 0) >= 0, SCTP_SS_MAX, access("/proc/modules", F_OK) == 0,
	       access("/dev/hwrng", F_OK) == 0,
	       access("/sys/kernel/tracing/events/sctp/sctp_probe_path", F_OK) == 0);
	for (FILE *file = fopen("/mnt/commands", "r"); file && fgets(line, sizeof(line), file);) {
		line[strcspn(line, "\n")] = 0;
		printf(", \"%s\": %d", line, run(line));
	}
	printf("}\n");
	fflush(stdout);
	reboot(RB_POWER_OFF);
}
