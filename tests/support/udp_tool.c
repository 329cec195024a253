// SPDX-License-Identifier: Apache-2.0
/*
 * A test's traffic: datagrams at known times.
 *
 *	udp_tool send ADDRESS PORT COUNT INTERVAL_NS BYTES START_NS	at T0 + START + i * INTERVAL; 0 COUNT:
 *for ever udp_tool flood ADDRESS PORT COUNT BYTES START_NS		as fast as send(2) lets it udp_tool
 *frame IFACE NS		one frame with an 802.1Q tag (VLAN 5, priority 3) at T0 + NS udp_tool receive
 *PORT COUNT	says "listening", then counts; 0: for ever udp_tool say TEXT NS		writes half of TEXT,
 *sleeps, writes the rest, sleeps for ever udp_tool exit STATUS NS		sleeps, exits udp_tool
 *stubborn		ignores SIGTERM udp_tool env			prints its environment and descriptors
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static void sleep_until(int64_t realtime_ns)
{
	struct timespec t = {realtime_ns / 1000000000, realtime_ns % 1000000000};

	while (clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &t, NULL))
		;
}

static void sleep_for(int64_t ns)
{
	struct timespec t = {ns / 1000000000, ns % 1000000000};

	nanosleep(&t, NULL);
}

static int64_t t0(void)
{
	const char *text = getenv("NETWARP_T0_REALTIME_NS");

	return text ? strtoll(text, NULL, 10) : 0;
}

static int fail(const char *what)
{
	perror(what);
	return 1;
}

static int send_all(char **argv, int flood)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[1]))};
	int64_t count = atoll(argv[2]), interval = flood ? 0 : atoll(argv[3]), i;
	size_t bytes = (size_t)atoll(argv[flood ? 3 : 4]);
	int64_t start = t0() + atoll(argv[flood ? 4 : 5]);
	static char data[65536];
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	inet_pton(AF_INET, argv[0], &to.sin_addr);
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)))
		return fail("connect");
	sleep_until(start);
	for (i = 0; !count || i < count; i++) {
		if (interval)
			sleep_until(start + i * interval);
		memcpy(data, &i, sizeof(i));
		if (send(fd, data, bytes, 0) < 0)
			return fail("send");
	}
	return 0;
}

static int send_frame(char **argv)
{
	unsigned char frame[64] = {2, 0, 0, 0, 0, 3, 2, 0, 0, 0, 0, 2, 0x81, 0, 0x60, 5, 0x88, 0xb5};
	struct sockaddr_ll to = {
	    .sll_family = AF_PACKET, .sll_halen = 6, .sll_ifindex = (int)if_nametoindex(argv[0])};
	int fd = socket(AF_PACKET, SOCK_RAW, 0);

	sleep_until(t0() + atoll(argv[1]));
	if (fd < 0 || sendto(fd, frame, sizeof(frame), 0, (struct sockaddr *)&to, sizeof(to)) < 0)
		return fail("frame");
	return 0;
}

static int receive(char **argv)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[0]))};
	int64_t count = atoll(argv[1]), i;
	char data[65536];
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)))
		return fail("bind");
	printf("listening\n");
	fflush(stdout);
	for (i = 0; !count || i < count; i++)
		if (recv(fd, data, sizeof(data), 0) < 0)
			return fail("recv");
	return 0;
}

static int show(void)
{
	char **e;
	int fd;

	for (e = environ; *e; e++)
		printf("env %s\n", *e);
	for (fd = 0; fd < 4096; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			printf("fd %d\n", fd);
	printf("slack %d\n", prctl(PR_GET_TIMERSLACK));
	return 0;
}

int main(int argc, char **argv)
{
	size_t half;

	if (argc < 2)
		return 2;
	if (!strcmp(argv[1], "send") && argc == 8)
		return send_all(argv + 2, 0);
	if (!strcmp(argv[1], "flood") && argc == 7)
		return send_all(argv + 2, 1);
	if (!strcmp(argv[1], "frame") && argc == 4)
		return send_frame(argv + 2);
	if (!strcmp(argv[1], "receive") && argc == 4)
		return receive(argv + 2);
	if (!strcmp(argv[1], "say") && argc == 4) {
		half = strlen(argv[2]) / 2;
		if (write(1, argv[2], half) < 0)
			return fail("write");
		sleep_for(atoll(argv[3]));
		if (write(1, argv[2] + half, strlen(argv[2]) - half) < 0)
			return fail("write");
		pause();
	}
	if (!strcmp(argv[1], "exit") && argc == 4) {
		sleep_for(atoll(argv[3]));
		return atoi(argv[2]);
	}
	if (!strcmp(argv[1], "stubborn")) {
		signal(SIGTERM, SIG_IGN);
		for (;;)
			pause();
	}
	if (!strcmp(argv[1], "env"))
		return show();
	return 2;
}
