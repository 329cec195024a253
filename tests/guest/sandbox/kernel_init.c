/* First program of the guest in tests/guest/sandbox/test_kernel.py: prints a line of JSON about its kernel.
 */
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
/* Last: they ask for sys/socket.h without saying so. */
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/sctp.h>
#include <linux/tcp.h>

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

/* True if the kernel signs segments of a socket by RFC 2385 (no algorithm named), or by RFC 5925. */
static bool is_signed(const char *algorithm)
{
	const struct sockaddr_in peer = {.sin_family = AF_INET, .sin_addr = {htonl(0x0a000001)}};
	struct tcp_md5sig md5 = {.tcpm_keylen = 4, .tcpm_key = "key"};
	struct tcp_ao_add ao = {.prefix = 32, .sndid = 1, .rcvid = 1, .keylen = 4, .key = "key"};
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	memcpy(algorithm ? &ao.addr : (void *)&md5.tcpm_addr, &peer, sizeof(peer));
	if (!algorithm)
		return setsockopt(fd, IPPROTO_TCP, TCP_MD5SIG, &md5, sizeof(md5)) == 0;
	strcpy(ao.alg_name, algorithm);
	return setsockopt(fd, IPPROTO_TCP, TCP_AO_ADD_KEY, &ao, sizeof(ao)) == 0;
}

/* True if the interface takes a qdisc of that kind, which this machine's tc may not know. */
static bool takes_qdisc(const char *interface, const char *kind)
{
	struct {
		struct nlmsghdr head;
		struct tcmsg tc;
		struct rtattr attribute;
		char kind[16];
	} ask = {
	    .head = {sizeof(ask), RTM_NEWQDISC, NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE, 1,
		     0},
	    .tc = {.tcm_ifindex = (int)if_nametoindex(interface),
		   .tcm_handle = 0xaa0000,
		   .tcm_parent = TC_H_ROOT},
	    .attribute = {RTA_LENGTH(sizeof(ask.kind)), TCA_KIND},
	};
	struct {
		struct nlmsghdr head;
		struct nlmsgerr error;
		char rest[512];
	} answer = {.error.error = -1};
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	strcpy(ask.kind, kind);
	send(fd, &ask, sizeof(ask), 0);
	recv(fd, &answer, sizeof(answer), 0);
	return answer.error.error == 0;
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
	       "%d, \"sctp_probe\": %d, \"md5\": %d, \"ao_sha1\": %d, \"ao_cmac\": %d, \"syncookies\": %d, "
	       "\"accecn\": %d",
	       name.release, name.version, tick.tv_nsec, (long)(after.tv_sec - before.tv_sec),
	       socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP) >= 0, socket(AF_INET, SOCK_STREAM, 262) >= 0,
	       socket(AF_PACKET, SOCK_RAW, 0) >= 0, SCTP_SS_MAX, access("/proc/modules", F_OK) == 0,
	       access("/dev/hwrng", F_OK) == 0,
	       access("/sys/kernel/tracing/events/sctp/sctp_probe_path", F_OK) == 0, is_signed(NULL),
	       is_signed("hmac(sha1)"), is_signed("cmac(aes128)"),
	       access("/proc/sys/net/ipv4/tcp_syncookies", F_OK) == 0,
	       access("/proc/sys/net/ipv4/tcp_ecn_option", F_OK) == 0);
	for (FILE *file = fopen("/mnt/commands", "r"); file && fgets(line, sizeof(line), file);) {
		line[strcspn(line, "\n")] = 0;
		printf(", \"%s\": %d", line, run(line));
	}
	printf(", \"dualpi2\": %d}\n", takes_qdisc("veth0", "dualpi2"));
	fflush(stdout);
	reboot(RB_POWER_OFF);
}
