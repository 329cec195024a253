// SPDX-License-Identifier: Apache-2.0
/* cell-init's side of the capture: starts the one capture process, hears of its failures, records its
 * results. */
#include "cell.h"
#include "tap.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCK_BYTES (256 * 1024)
#define BLOCKS	    8

/* The `capture` steps, in their order: a tap_message's index is a place in this list. */
static struct tap_request *requests;
static size_t request_count;

static int collect(struct cell *cell)
{
	struct tap_request *request;
	const struct step *step;
	size_t i;

	requests = calloc(cell->steps.count, sizeof(*requests));
	if (!requests)
		return cell_fail(cell, "out of memory");
	for (i = 0; i < cell->steps.count; i++) {
		step = &cell->steps.list[i];
		if (step->verb != VERB_CAPTURE)
			continue;
		request = &requests[request_count++];
		request->ns = (int)step_int(step, "ns", 0);
		request->ifindex = (int)step_int(step, "ifindex", 0);
		request->iface = step_text(step, "iface");
		request->file = step_text(step, "file");
		request->block_bytes = (uint32_t)step_int(step, "block_bytes", BLOCK_BYTES);
		request->blocks = (uint32_t)step_int(step, "blocks", BLOCKS);
		request->forget = cell->guest;
		if (make_parents(request->file))
			return cell_fail_errno(cell, errno, "cannot make the directory of %s", request->file);
	}
	return 0;
}

/* One message; its kind (TAP_FAILED: the reason is set), or -1 when there will be none. */
static int hear(struct cell *cell, struct tap_message *message)
{
	ssize_t n;

	do
		n = recv(cell->capture_fd, message, sizeof(*message), 0);
	while (n < 0 && errno == EINTR);
	if (n != (ssize_t)sizeof(*message))
		return cell_fail(cell, "the capture process has gone");
	if (message->kind == TAP_FAILED)
		cell_fail_errno(cell, message->error, "capture %s: %s",
				message->index >= 0 ? requests[message->index].file : "", message->text);
	return (int)message->kind;
}

int capture_begin(struct cell *cell)
{
	struct tap_message message;
	int pair[2];

	if (collect(cell))
		return -1;
	if (request_count == 0)
		return 0; /* a cell may capture nothing */
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return cell_fail_errno(cell, errno, "socketpair");
	cell->capture_pid = fork();
	if (cell->capture_pid < 0) {
		cell->capture_pid = 0;
		close(pair[0]);
		close(pair[1]);
		return cell_fail_errno(cell, errno, "fork");
	}
	if (cell->capture_pid == 0) {
		close(pair[0]);
		_exit(tap_run(requests, request_count, pair[1]));
	}
	close(pair[1]);
	cell->capture_fd = pair[0];
	if (hear(cell, &message) != TAP_BOUND)
		return -1;
	return loop_add(cell, cell->capture_fd, WAKE_CAPTURE);
}

int capture_spoke(struct cell *cell)
{
	struct tap_message message;

	hear(cell, &message);
	return cell_fail(cell, "the capture process spoke out of turn"); /* unless it said why */
}

static int record(struct cell *cell, const struct tap_message *message)
{
	const struct tap_request *request = &requests[message->index];

	ndjson_begin(&cell->out, "capture");
	ndjson_str(&cell->out, "file", request->file);
	ndjson_str(&cell->out, "iface", request->iface);
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
				request->file);
	/* the other captures are still to be told of, unless nothing can be written any more */
	return cell->out.error ? -1 : 0;
}

int capture_finish(struct cell *cell)
{
	const char command = TAP_DRAIN;
	struct tap_message message;
	size_t results = 0;
	int kind, result = 0;

	if (!cell->capture_pid)
		return 0;
	loop_remove(cell, cell->capture_fd);
	if (send(cell->capture_fd, &command, 1, MSG_NOSIGNAL) != 1)
		result = cell_fail_errno(cell, errno, "cannot end the capture");
	while (!result && results < request_count) {
		kind = hear(cell, &message);
		if (kind < 0)
			result = -1;
		else if (kind == TAP_RESULT && ++results)
			result = record(cell, &message);
	}
	close(cell->capture_fd);
	/* it has nothing more to do: killing it is only for one that hangs */
	if (result)
		kill(cell->capture_pid, SIGKILL);
	waitpid(cell->capture_pid, NULL, 0);
	cell->capture_pid = 0;
	free(requests);
	requests = NULL;
	return result;
}
