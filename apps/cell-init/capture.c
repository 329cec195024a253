// SPDX-License-Identifier: Apache-2.0
/* Documented in capture.h. */
#include "capture.h"

#include "capture_process.h"
#include "files.h"
#include "loop.h"
#include "process.h"
#include "record.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Of the `capture` steps, in their order: the .index of a message is one of this list. */
static struct packet_ring_config *interfaces;
static size_t interface_count;
static pid_t capture_pid; /* 0: none */
static int capture_fd;

static int collect_interfaces(struct cell *cell, const struct steps *steps)
{
	const struct step_capture *step;
	struct packet_ring_config *interface;
	size_t i;

	interfaces = calloc(steps->count, sizeof(*interfaces));
	if (!interfaces)
		return cell_fail(cell, "out of memory");
	for (i = 0; i < steps->count; i++) {
		if (steps->list[i].verb != VERB_CAPTURE)
			continue;
		step = &steps->list[i].capture;
		interface = &interfaces[interface_count++];
		*interface = (struct packet_ring_config){.ns_fd = NS_FD_BASE + step->ns,
							 .ifindex = step->ifindex,
							 .iface = step->iface,
							 .file = step->file,
							 .block_bytes = (uint32_t)step->block_bytes,
							 .blocks = (uint32_t)step->blocks,
							 .drop_pages = cell->guest};
		if (files_make_parents(interface->file))
			return cell_fail_errno(cell, errno, "cannot make the directory of %s",
					       interface->file);
	}
	return 0;
}

/* One message. Returns its kind (CAPTURE_FAILED: the reason is set), or -1 when there will be none. */
static int receive(struct cell *cell, struct capture_message *message)
{
	ssize_t n;

	do
		n = recv(capture_fd, message, sizeof(*message), 0);
	while (n < 0 && errno == EINTR);
	if (n != (ssize_t)sizeof(*message))
		return cell_fail(cell, "the capture process has gone");
	if (message->kind == CAPTURE_FAILED)
		cell_fail_errno(cell, message->error, "capture %s: %s",
				message->index >= 0 ? interfaces[message->index].file : "", message->text);
	return (int)message->kind;
}

/* It ended before it was asked to. */
static int on_end(struct cell *cell, int status)
{
	capture_pid = 0;
	return cell_fail(cell, "the capture process ended (%s %d)", WIFSIGNALED(status) ? "signal" : "status",
			 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

/* It sent a message before it was asked to: it failed. */
static int on_message(struct cell *cell)
{
	struct capture_message message;

	receive(cell, &message);
	return cell_fail(cell, "the capture process sent an unexpected message"); /* unless it said why */
}

int capture_begin(struct cell *cell, const struct steps *steps)
{
	struct capture_message message;
	int pair[2];

	if (collect_interfaces(cell, steps))
		return -1;
	if (interface_count == 0)
		return 0; /* a cell may capture nothing */
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return cell_fail_errno(cell, errno, "socketpair");
	capture_pid = fork();
	if (capture_pid < 0) {
		capture_pid = 0;
		close(pair[0]);
		close(pair[1]);
		return cell_fail_errno(cell, errno, "fork");
	}
	if (capture_pid == 0) {
		close(pair[0]);
		_exit(capture_process_run(interfaces, interface_count, pair[1]));
	}
	close(pair[1]);
	capture_fd = pair[0];
	process_adopt(capture_pid, on_end);
	if (receive(cell, &message) != CAPTURE_BOUND)
		return -1;
	return loop_add(cell, capture_fd, on_message);
}

static int record(struct cell *cell, const struct capture_message *message)
{
	const struct packet_ring_config *interface = &interfaces[message->index];

	ndjson_begin(&cell->out, "capture");
	ndjson_str(&cell->out, "file", interface->file);
	ndjson_str(&cell->out, "iface", interface->iface);
	ndjson_uint(&cell->out, "packets", message->packets);
	ndjson_uint(&cell->out, "bytes", message->bytes);
	ndjson_uint(&cell->out, "dropped", message->dropped);
	ndjson_uint(&cell->out, "truncated", message->truncated);
	if (message->packets) {
		record_t(cell, "first_t_ns", message->first_realtime_ns);
		record_t(cell, "last_t_ns", message->last_realtime_ns);
	} else {
		ndjson_null(&cell->out, "first_t_ns");
		ndjson_null(&cell->out, "last_t_ns");
	}
	ndjson_int(&cell->out, "errno", message->error);
	ndjson_int(&cell->out, "fsync_errno", message->fsync_error);
	record_end_line(cell);
	if (message->error || message->fsync_error)
		cell_fail_errno(cell, message->error ? message->error : message->fsync_error, "capture %s",
				interface->file);
	/* the other captures are still recorded, unless nothing can be written any more */
	return cell->out.error ? -1 : 0;
}

int capture_finish(struct cell *cell)
{
	const char command = CAPTURE_DRAIN;
	struct capture_message message;
	size_t results = 0;
	int kind, result = 0;

	if (!capture_pid)
		return 0;
	loop_remove(capture_fd);
	if (send(capture_fd, &command, 1, MSG_NOSIGNAL) != 1)
		result = cell_fail_errno(cell, errno, "cannot end the capture");
	while (!result && results < interface_count) {
		kind = receive(cell, &message);
		if (kind < 0)
			result = -1;
		else if (kind == CAPTURE_RESULT && ++results)
			result = record(cell, &message);
	}
	close(capture_fd);
	/* it has nothing more to do: killing it is only for one that hangs */
	if (result)
		kill(capture_pid, SIGKILL);
	waitpid(capture_pid, NULL, 0);
	capture_pid = 0;
	process_adopt(0, NULL);
	free(interfaces);
	interfaces = NULL;
	return result;
}
