// SPDX-License-Identifier: Apache-2.0
/*
 * drill: the first program of a guest that plays one packetdrill script. It reads steps.txt, makes the
 * device, runs the shell's lines, plays the events at their instants, reports what happened in drill.ndjson
 * and powers off. It judges nothing: what was expected stays with the parent process.
 */
#include "call.h"
#include "clock.h"
#include "guest.h"
#include "play.h"
#include "report.h"
#include "script.h"
#include "wire.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <errno.h>
#include <unistd.h>

/* The shell's lines before and after the events; -1 as the event's number says which. */
static int shell(const char *name, const char *command)
{
	struct ndjson *out;
	int status;

	if (!command)
		return 0;
	status = guest_shell(command);
	out = report_begin("shell", -1);
	ndjson_str(out, "which", name);
	ndjson_int(out, "status", status);
	report_end();
	return status;
}

static int run(struct script *script, int *event)
{
	if (wire_make()) {
		report_failed(-1, "cannot make tun0: %s", strerror(errno));
		return -1;
	}
	if (shell("setup", script->setup))
		return -1;
	if (wire_listen()) {
		report_failed(-1, "cannot capture on tun0: %s", strerror(errno));
		return -1;
	}
	if (shell("init", script->init))
		return -1;
	if (guest_watch(script->start_ns + script->limit_ns, event)) {
		report_failed(-1, "cannot watch the time");
		return -1;
	}
	play(script, event);
	play_rest();
	shell("cleanup", script->cleanup);
	return 0;
}

int main(void)
{
	struct script script = {0};
	int event = -1;

	if (getpid() != 1) {
		fputs("drill: must be pid 1 of a guest\n", stderr);
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	if (clock_timerslack() || guest_enter() || report_open() || script_read("steps.txt", &script))
		guest_leave();
	run(&script, &event);
	report_begin("end", -1);
	report_end();
	guest_end();
}
