// SPDX-License-Identifier: Apache-2.0
/* Documented in script.h. */
#include "script.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The words of a line, one after another. A word that is missing or wrong makes the whole line wrong. */
struct words {
	char *next;
	bool wrong;
};

static const char *word(struct words *words)
{
	char *start = words->next, *end;

	if (!start || !*start) {
		words->wrong = true;
		return "";
	}
	end = strchr(start, ' ');
	if (end)
		*end++ = '\0';
	words->next = end;
	return start;
}

static int64_t number(struct words *words)
{
	const char *text = word(words);
	long long value;
	char *end;

	errno = 0;
	value = strtoll(text, &end, 10);
	if (errno || end == text || *end)
		words->wrong = true;
	return value;
}

static size_t count(struct words *words, size_t most)
{
	int64_t value = number(words);

	if (value < 0 || (uint64_t)value > most) {
		words->wrong = true;
		return 0;
	}
	return (size_t)value;
}

static int digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static struct bytes hex(struct words *words)
{
	const char *text = word(words);
	struct bytes bytes = {0};
	size_t i;

	if (!strcmp(text, "-"))
		return bytes;
	bytes.length = strlen(text) / 2;
	bytes.data = calloc(1, bytes.length + 1);
	if (!bytes.data || strlen(text) % 2) {
		words->wrong = true;
		return bytes;
	}
	for (i = 0; i < bytes.length; i++) {
		int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);

		if (high < 0 || low < 0)
			words->wrong = true;
		else
			bytes.data[i] = (unsigned char)(high << 4 | low);
	}
	return bytes;
}

/* A command: bytes that end with a zero. */
static char *command(struct words *words)
{
	return (char *)hex(words).data;
}

static struct link *links(struct words *words, size_t *found)
{
	size_t i, most = count(words, LINKS_MAX);
	struct link *list = calloc(most ? most : 1, sizeof(*list));

	for (i = 0; list && i < most; i++) {
		list[i].offset = count(words, 1 << 20);
		list[i].to = (int)number(words);
	}
	*found = list ? most : 0;
	return list;
}

static void read_in(struct words *words, struct inbound *in)
{
	size_t i;

	in->header = hex(words);
	in->zeros = count(words, 1 << 16);
	in->sum_from = count(words, in->header.length);
	in->sum_at = count(words, in->header.length);
	in->pseudo = (int)count(words, 255);
	in->local_port_at = count(words, in->header.length);
	in->ecr_at = count(words, in->header.length);
	in->ecr = (uint32_t)number(words);
	in->minus = (uint32_t)number(words);
	in->count = count(words, NUMBERS_MAX);
	for (i = 0; i < in->count; i++)
		in->counts[i] = count(words, in->header.length);
	if (in->header.length < 40 || in->local_port_at + 2 > in->header.length ||
	    in->ecr_at + 4 > in->header.length || in->sum_at + 2 > in->header.length)
		words->wrong = true;
	for (i = 0; i < in->count; i++)
		if (in->counts[i] + 4 > in->header.length)
			words->wrong = true;
}

static void read_out(struct words *words, struct outbound *out)
{
	out->length = count(words, 1 << 24);
	out->stamped = count(words, 1) != 0;
	out->stamp = (uint32_t)number(words);
	out->patience_ns = number(words);
}

static void read_piece(struct words *words, struct piece *piece)
{
	size_t i;

	piece->size = count(words, 1 << 24);
	piece->bytes = hex(words);
	piece->wanted = count(words, 1) != 0;
	piece->pointers = links(words, &piece->pointer_count);
	piece->fds = links(words, &piece->fd_count);
	if (piece->bytes.length > piece->size)
		words->wrong = true;
	for (i = 0; i < piece->pointer_count; i++)
		if (piece->pointers[i].offset + sizeof(void *) > piece->size)
			words->wrong = true;
	for (i = 0; i < piece->fd_count; i++)
		if (piece->fds[i].offset + sizeof(int) > piece->size)
			words->wrong = true;
}

/* Every piece that is named is there. */
static bool whole(const struct call *call)
{
	size_t i, j;

	for (i = 0; i < call->argument_count; i++)
		if (call->arguments[i].kind == 'm' &&
		    (call->arguments[i].value < 0 || (size_t)call->arguments[i].value >= call->piece_count))
			return false;
	for (i = 0; i < call->piece_count; i++)
		for (j = 0; j < call->pieces[i].pointer_count; j++)
			if (call->pieces[i].pointers[j].to < 0 ||
			    (size_t)call->pieces[i].pointers[j].to >= call->piece_count)
				return false;
	return call->gives_in < 0 ||
	       ((size_t)call->gives_in < call->piece_count && call->pieces[call->gives_in].size >= 8);
}

static void read_call(struct words *words, struct call *call)
{
	size_t i;

	call->number = (long)count(words, 1000);
	call->blocks = count(words, 1) != 0;
	call->argument_count = count(words, ARGUMENTS_MAX);
	for (i = 0; i < call->argument_count; i++) {
		call->arguments[i].kind = *word(words);
		call->arguments[i].value = number(words);
		if (!strchr("ifm", call->arguments[i].kind))
			words->wrong = true;
	}
	call->give_count = count(words, 2);
	for (i = 0; i < call->give_count; i++)
		call->gives[i] = (int)number(words);
	call->gives_in = (int)number(words);
	call->piece_count = count(words, PIECES_MAX);
	call->pieces = calloc(call->piece_count ? call->piece_count : 1, sizeof(*call->pieces));
	for (i = 0; call->pieces && i < call->piece_count; i++)
		read_piece(words, &call->pieces[i]);
	if (!call->pieces || !whole(call))
		words->wrong = true;
}

static void read_event(struct words *words, struct script *script)
{
	static const char anchors[] = "snp*";
	struct event *events = realloc(script->events, (script->event_count + 1) * sizeof(*events)), *event;
	const char *anchor = word(words), *place = strchr(anchors, *anchor), *kind;

	if (!events || !*anchor || !place) {
		words->wrong = true;
		return;
	}
	script->events = events;
	event = &events[script->event_count++];
	memset(event, 0, sizeof(*event));
	event->anchor = (enum anchor)(place - anchors);
	event->time_ns = number(words);
	kind = word(words);
	if (!strcmp(kind, "shell")) {
		event->kind = EVENT_SHELL;
		event->command = command(words);
	} else if (!strcmp(kind, "call")) {
		event->kind = EVENT_CALL;
		read_call(words, &event->call);
	} else {
		event->kind = !strcmp(kind, "in") ? EVENT_IN : EVENT_OUT;
		event->connection = (int)count(words, script->connection_count);
		if ((size_t)event->connection >= script->connection_count)
			words->wrong = true;
		if (event->kind == EVENT_IN)
			read_in(words, &event->in);
		else if (!strcmp(kind, "out"))
			read_out(words, &event->out);
		else
			words->wrong = true;
	}
}

static void read_connection(struct words *words, struct script *script)
{
	struct connection *list =
	    realloc(script->connections, (script->connection_count + 1) * sizeof(*list));
	struct connection *one;

	if (!list) {
		words->wrong = true;
		return;
	}
	script->connections = list;
	one = &list[script->connection_count++];
	memset(one, 0, sizeof(*one));
	one->active = count(words, 1) != 0;
	one->local_port = (uint16_t)count(words, 65535);
	one->remote_port = (uint16_t)count(words, 65535);
}

static void read_line(struct words *words, struct script *script)
{
	const char *verb = word(words);

	if (!strcmp(verb, "start"))
		script->start_ns = number(words);
	else if (!strcmp(verb, "limit"))
		script->limit_ns = number(words);
	else if (!strcmp(verb, "mss"))
		script->mss = (uint16_t)count(words, 65535);
	else if (!strcmp(verb, "setup"))
		script->setup = command(words);
	else if (!strcmp(verb, "init"))
		script->init = command(words);
	else if (!strcmp(verb, "cleanup"))
		script->cleanup = command(words);
	else if (!strcmp(verb, "connection"))
		read_connection(words, script);
	else if (!strcmp(verb, "event"))
		read_event(words, script);
	else
		words->wrong = true;
	if (words->next)
		words->wrong = true;
}

int script_read(const char *path, struct script *script)
{
	FILE *file = fopen(path, "r");
	size_t room = 0, line_number = 0;
	struct words words = {0};
	char *line = NULL;
	ssize_t length;

	if (!file) {
		fprintf(stderr, "drill: %s: %s\n", path, strerror(errno));
		return -1;
	}
	while (!words.wrong && (length = getline(&line, &room, file)) > 0) {
		line_number++;
		if (line[length - 1] == '\n')
			line[length - 1] = '\0';
		words = (struct words){.next = line};
		read_line(&words, script);
	}
	free(line);
	fclose(file);
	if (words.wrong)
		fprintf(stderr, "drill: %s: line %zu cannot be read\n", path, line_number);
	return words.wrong ? -1 : 0;
}
