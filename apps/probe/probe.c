// SPDX-License-Identifier: Apache-2.0
/*
 * probe: UDP datagrams at known times, for `netwarp calibrate`. The captures show when they arrive.
 *
 *	probe send ADDRESS PORT IP_BYTES[,IP_BYTES...] COUNT INTERVAL_NS START_NS UNTIL_NS [AT_NS,...]
 *		COUNT datagrams, the sizes in turn, at T0 + START + i * INTERVAL (0: all at once), one more of
 *		the first size at T0 + each AT; the socket stays open until T0 + UNTIL.
 *	probe echo PORT [ADDRESS]
 *		prints "listening", sends every datagram back to its source. ADDRESS: any of IPv4.
 *	probe sink PORT [ADDRESS]
 *		prints "listening", takes nothing (the kernel then sends no ICMP).
 *
 * Each datagram begins with its number, 64 bit, so that no two are alike. T0 is NETWARP_T0_REALTIME_NS.
 * Exit status: 0 done, 1 failed, 2 usage.
 */
#include "address.h"
#include "clock.h"
#include "number.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	UDP_BYTES = 8,
	IPV4_BYTES = 20,
	IPV6_BYTES = 40,
	SIZES_MAX = 16,
	TIMES_MAX = 256,
	IP_BYTES_MAX = 65535
};

struct plan {
	union address to;
	int64_t sizes[SIZES_MAX];
	int64_t at_ns[TIMES_MAX];
	size_t size_count, at_count;
	int64_t count, interval_ns, start_ns, until_ns, t0_ns;
};

static int usage(void)
{
	fputs(
	    "usage: probe send ADDRESS PORT IP_BYTES[,...] COUNT INTERVAL_NS START_NS UNTIL_NS [AT_NS,...]\n"
	    "       probe echo PORT [ADDRESS] | probe sink PORT [ADDRESS]\n"
	    "for example: probe send 10.0.0.2 7001 100 1000 10000000 0 12000000000\n",
	    stderr);
	return 2;
}

static int fail(const char *what)
{
	fprintf(stderr, "probe: %s: %s\n", what, strerror(errno));
	return 1;
}

/* A list of numbers between commas; 0 where one is no number or there are too many. `text` is cut up. */
static size_t numbers(char *text, int64_t low, int64_t high, int64_t *items, size_t most)
{
	size_t count = 0;
	char *save = NULL;

	for (char *word = strtok_r(text, ",", &save); word; word = strtok_r(NULL, ",", &save))
		if (count == most || !number_parse(word, low, high, &items[count++]))
			return 0;
	return count;
}

/* An address in text and a port. */
static bool place_of(const char *address, const char *port, union address *place)
{
	int64_t value;

	if (!address_parse(address, place) || !number_parse(port, 1, 65535, &value))
		return false;
	address_set_port(place, (uint16_t)value);
	return true;
}

static int64_t headers_bytes(const union address *to)
{
	return UDP_BYTES + (to->any.sa_family == AF_INET6 ? IPV6_BYTES : IPV4_BYTES);
}

static int send_one(int fd, const struct plan *plan, uint64_t sequence, int64_t ip_bytes)
{
	static unsigned char datagram[IP_BYTES_MAX];
	uint64_t order = htobe64(sequence);
	size_t bytes = (size_t)(ip_bytes - headers_bytes(&plan->to));

	memcpy(datagram, &order, sizeof(order));
	return sendto(fd, datagram, bytes, 0, &plan->to.any, address_length(&plan->to.any)) == (ssize_t)bytes
		   ? 0
		   : -1;
}

static int sleep_until(int64_t realtime_ns)
{
	int error;

	do
		error = clock_sleep_until(realtime_ns);
	while (error == EINTR);
	return error;
}

/* The next moment of two ascending series: the regular ones, and those listed. */
static int play(int fd, const struct plan *plan)
{
	int64_t regular = 0, slept_for = INT64_MIN, at_ns;
	size_t listed = 0, size;

	for (uint64_t sequence = 0; regular < plan->count || listed < plan->at_count; sequence++) {
		at_ns = plan->start_ns + regular * plan->interval_ns;
		size = (size_t)regular % plan->size_count;
		if (regular == plan->count || (listed < plan->at_count && plan->at_ns[listed] < at_ns)) {
			at_ns = plan->at_ns[listed++];
			size = 0;
		} else {
			regular++;
		}
		if (at_ns != slept_for && sleep_until(plan->t0_ns + at_ns))
			return fail("sleep");
		slept_for = at_ns;
		if (send_one(fd, plan, sequence, plan->sizes[size]))
			return fail("sendto");
	}
	return sleep_until(plan->t0_ns + plan->until_ns) ? fail("sleep") : 0;
}

static int send_all(int argc, char **argv)
{
	struct plan plan = {.count = 0};
	const char *t0 = getenv("NETWARP_T0_REALTIME_NS");
	int fd, status;

	if (argc < 7 || argc > 8 || !place_of(argv[0], argv[1], &plan.to) ||
	    !number_parse(argv[3], 0, INT64_C(1) << 32, &plan.count) ||
	    !number_parse(argv[4], 0, INT64_MAX / 2, &plan.interval_ns) ||
	    !number_parse(argv[5], 0, INT64_MAX / 2, &plan.start_ns) ||
	    !number_parse(argv[6], 0, INT64_MAX / 2, &plan.until_ns))
		return usage();
	plan.size_count = numbers(argv[2], headers_bytes(&plan.to) + 8, IP_BYTES_MAX, plan.sizes, SIZES_MAX);
	if (argc == 8)
		plan.at_count = numbers(argv[7], 0, INT64_MAX / 2, plan.at_ns, TIMES_MAX);
	if (!plan.size_count || (argc == 8 && !plan.at_count))
		return usage();
	if (!t0 || !number_parse(t0, 0, INT64_MAX / 2, &plan.t0_ns)) {
		fputs("probe: NETWARP_T0_REALTIME_NS is not set to a time: cell-init sets it\n", stderr);
		return 2;
	}
	fd = socket(plan.to.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return fail("socket");
	status = clock_timerslack() ? fail("timer slack") : play(fd, &plan);
	close(fd);
	return status;
}

static int echo(int fd)
{
	static unsigned char datagram[IP_BYTES_MAX];
	union address from;
	socklen_t length;
	ssize_t bytes;

	for (;;) {
		length = sizeof(from);
		bytes = recvfrom(fd, datagram, sizeof(datagram), 0, &from.any, &length);
		if (bytes < 0 || sendto(fd, datagram, (size_t)bytes, 0, &from.any, length) != bytes)
			return fail("echo");
	}
}

static int listen_at(const char *port, const char *address, bool answers)
{
	union address at;
	int fd, status;

	if (!place_of(address ? address : "0.0.0.0", port, &at))
		return usage();
	fd = socket(at.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return fail("socket");
	if (bind(fd, &at.any, address_length(&at.any))) {
		status = fail("bind");
	} else {
		puts("listening");
		fflush(stdout);
		status = answers ? echo(fd) : (pause(), 0);
	}
	close(fd);
	return status;
}

int main(int argc, char **argv)
{
	if ((argc == 3 || argc == 4) && !strcmp(argv[1], "echo"))
		return listen_at(argv[2], argv[3], true);
	if ((argc == 3 || argc == 4) && !strcmp(argv[1], "sink"))
		return listen_at(argv[2], argv[3], false);
	if (argc > 2 && !strcmp(argv[1], "send"))
		return send_all(argc - 2, argv + 2);
	return usage();
}
