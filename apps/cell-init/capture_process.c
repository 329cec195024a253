// SPDX-License-Identifier: Apache-2.0
/* Documented in capture_process.h. */
#include "capture_process.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONTROL_EVENT UINT32_MAX

static int send_message(int control_fd, const struct capture_message *message)
{
	return send(control_fd, message, sizeof(*message), MSG_NOSIGNAL) == (ssize_t)sizeof(*message) ? 0
												      : -1;
}

static void send_failure(int control_fd, int index, int error, const char *text)
{
	struct capture_message message = {.kind = CAPTURE_FAILED, .index = index, .error = error};

	snprintf(message.text, sizeof(message.text), "%s", text);
	send_message(control_fd, &message);
}

static void send_result(struct packet_ring *ring, int index, int control_fd)
{
	struct capture_message message = {.kind = CAPTURE_RESULT, .index = index};

	message.dropped = packet_ring_dropped(ring);
	pcap_writer_close(&ring->pcap);
	message.error = ring->pcap.error;
	message.fsync_error = ring->pcap.fsync_error;
	message.packets = ring->pcap.packets;
	message.bytes = ring->pcap.bytes;
	message.truncated = ring->truncated;
	message.first_realtime_ns = ring->pcap.first_ns;
	message.last_realtime_ns = ring->pcap.last_ns;
	send_message(control_fd, &message);
}

static int epoll_add(int epoll_fd, int fd, uint32_t which)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = which};

	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

/* Until the command to drain. */
static void run(struct packet_ring *rings, size_t count, int control_fd)
{
	int epoll_fd = epoll_create1(EPOLL_CLOEXEC), n, i;
	struct epoll_event events[16];
	struct packet_ring *ring;
	size_t t;

	if (epoll_fd < 0 || epoll_add(epoll_fd, control_fd, CONTROL_EVENT)) {
		send_failure(control_fd, -1, errno, "epoll");
		return;
	}
	for (t = 0; t < count; t++)
		if (epoll_add(epoll_fd, rings[t].fd, (uint32_t)t))
			send_failure(control_fd, (int)t, errno, "epoll");
	for (;;) {
		n = epoll_wait(epoll_fd, events, 16, -1);
		for (i = 0; i < n; i++) {
			if (events[i].data.u32 == CONTROL_EVENT)
				goto out;
			ring = &rings[events[i].data.u32];
			if (events[i].events & EPOLLERR)
				packet_ring_clear_error(ring);
			packet_ring_take_closed(ring);
			if (ring->pcap.error && !ring->failure_sent) {
				ring->failure_sent = true;
				send_failure(control_fd, (int)events[i].data.u32, ring->pcap.error, "write");
			}
		}
	}
out:
	close(epoll_fd);
}

static void take_command(int control_fd)
{
	char command;

	while (recv(control_fd, &command, 1, 0) < 0 && errno == EINTR)
		;
}

int capture_process_run(const struct packet_ring_config *configs, size_t count, int control_fd)
{
	struct sched_param priority = {.sched_priority = 1};
	struct packet_ring *rings = calloc(count, sizeof(*rings));
	const char *failed = rings ? NULL : "calloc";
	size_t opened = 0, i;

	/* Above the apps, below cell-init: a ring never waits for a busy sender. Where that is refused it
	 * may. */
	sched_setscheduler(0, SCHED_FIFO, &priority);
	while (!failed && opened < count)
		failed = packet_ring_open(&rings[opened], &configs[opened]), opened++;
	if (failed) {
		send_failure(control_fd, (int)opened - 1, errno, failed);
		/* packets captured until now are not reported; wait for the end */
		take_command(control_fd);
		return 1;
	}
	send_message(control_fd, &(struct capture_message){.kind = CAPTURE_BOUND});
	run(rings, count, control_fd);
	/* left unread it would reset the socket when we exit, and the reset overtakes our messages */
	take_command(control_fd);
	for (i = 0; i < count; i++)
		packet_ring_drain(&rings[i]);
	for (i = 0; i < count; i++)
		send_result(&rings[i], (int)i, control_fd);
	return 0;
}
