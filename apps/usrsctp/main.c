// SPDX-License-Identifier: Apache-2.0
/*
 * sctp-peer: messages over SCTP in UDP (RFC 6951), by the kernel or by usrsctp, at either end.
 *
 *	sctp-peer kernel|usrsctp receive PORT OWN[,OWN...]
 *		prints "listening", takes what comes over any number of associations.
 *	sctp-peer kernel|usrsctp send PORT OWN[,OWN...] PEER[,PEER...] BYTES INTERVAL_MS
 *		a message at each interval, from PORT to PORT, until it is ended. Connects again a second
 *		after the association was lost or refused.
 *
 * Addresses are of IPv4. Each loss is said on standard output. Exit status: 1 failed, 2 usage.
 */
#include "clock.h"
#include "number.h"
#include "stack.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ADDRESSES_MAX = 8, MESSAGE_MAX = 65536, TRY_AGAIN_S = 1, INTERVAL_MAX_MS = 3600 * 1000 };

struct ends {
	struct sockaddr_in list[ADDRESSES_MAX];
	int count;
};

static const struct stack *stack;

static int usage(void)
{
	fputs("usage: sctp-peer kernel|usrsctp receive PORT OWN[,OWN...]\n"
	      "       sctp-peer kernel|usrsctp send PORT OWN[,OWN...] PEER[,PEER...] BYTES INTERVAL_MS\n"
	      "for example: sctp-peer usrsctp send 2905 10.0.0.1 10.0.0.2 200 100\n",
	      stderr);
	return 2;
}

static int fail(const char *what)
{
	fprintf(stderr, "sctp-peer: %s: %s\n", what, strerror(errno));
	return 1;
}

static bool read_ends(char *text, const char *port_text, struct ends *ends)
{
	char *rest = NULL, *word;
	int64_t port;

	if (!number_parse(port_text, 1, UINT16_MAX, &port))
		return false;
	ends->count = 0;
	for (word = strtok_r(text, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
		struct sockaddr_in *end = &ends->list[ends->count];

		if (ends->count == ADDRESSES_MAX)
			return false;
		*end = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
		if (!inet_aton(word, &end->sin_addr))
			return false;
		ends->count++;
	}
	return ends->count > 0;
}

static void *take(void *socket)
{
	char data[MESSAGE_MAX];

	while (stack->receive(socket, data, sizeof(data)) > 0)
		;
	puts("lost");
	fflush(stdout);
	stack->close(socket);
	return NULL;
}

static int receive(struct ends *own)
{
	struct stack_socket *socket, *peer;
	pthread_t thread;

	socket = stack->bound((struct sockaddr *)own->list, own->count);
	if (!socket)
		return fail("bind");
	if (stack->listen(socket))
		return fail("listen");
	puts("listening");
	fflush(stdout);
	while ((peer = stack->accept(socket)))
		if (pthread_create(&thread, NULL, take, peer) || pthread_detach(thread))
			return fail("pthread_create");
	return fail("accept");
}

/* Returns 0 when the association was lost or never came up, 1 after another failure. */
static int send_over_one(struct ends *own, struct ends *peer, size_t bytes, int64_t interval_ns)
{
	static const char message[MESSAGE_MAX];
	struct stack_socket *socket = stack->bound((struct sockaddr *)own->list, own->count);
	int64_t next_ns;

	if (!socket)
		return errno == EADDRINUSE ? 0 : fail("bind");
	if (!stack->connect(socket, (struct sockaddr *)peer->list, peer->count)) {
		puts("connected");
		fflush(stdout);
		next_ns = clock_realtime_ns();
		while (!stack->send(socket, message, bytes)) {
			next_ns += interval_ns;
			clock_sleep_until(next_ns);
		}
	}
	printf("lost: %s\n", strerror(errno));
	fflush(stdout);
	stack->close(socket);
	return 0;
}

int main(int argc, char **argv)
{
	struct ends own, peer;
	int64_t bytes, interval_ms;
	bool sends;

	if (argc < 5)
		return usage();
	sends = !strcmp(argv[2], "send");
	stack = !strcmp(argv[1], "usrsctp")  ? &stack_usrsctp
		: !strcmp(argv[1], "kernel") ? &stack_kernel
					     : NULL;
	if (!stack || argc != (sends ? 8 : 5) || (!sends && strcmp(argv[2], "receive") != 0) ||
	    !read_ends(argv[4], argv[3], &own))
		return usage();
	if (sends && (!read_ends(argv[5], argv[3], &peer) || !number_parse(argv[6], 1, MESSAGE_MAX, &bytes) ||
		      !number_parse(argv[7], 1, INTERVAL_MAX_MS, &interval_ms)))
		return usage();
	if (clock_timerslack())
		return fail("PR_SET_TIMERSLACK");
	if (stack->init())
		return fail("the stack");
	if (!sends)
		return receive(&own);
	while (!send_over_one(&own, &peer, (size_t)bytes, interval_ms * 1000000))
		clock_sleep_until(clock_realtime_ns() + TRY_AGAIN_S * NS_PER_S);
	return 1;
}
