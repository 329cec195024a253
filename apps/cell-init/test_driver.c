// SPDX-License-Identifier: Apache-2.0
/*
 * cell-init-test-driver: the pure parts of cell-init behind a pipe, for tests on the host with ASan and
 * UBSan.
 *
 * Standard input: requests, each a line "NAME LENGTH" and LENGTH bytes. Standard output: one NDJSON line for
 * each. By NAME, the bytes are:
 *
 * steps: steps.txt. Answer: the decoded steps, or the error.
 * request: netlink requests. Answer: how many, or why they are refused; then numbered from 1000.
 * replies: netlink replies. Answer: each message, decoded.
 * text: any. Answer: one NDJSON string.
 * trace: two format files and a page of the ring buffer. Answer: its records.
 * pcap: "PATH\n", then records (int64 t_ns, uint32 captured, uint32 length), which are written to PATH.
 */
#include "ndjson.h"
#include "netlink_message.h"
#include "pcap_writer.h"
#include "steps.h"
#include "trace_buffer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct ndjson out;

static void put_text(const char *key, const char *text, size_t len)
{
	ndjson_array_begin(&out, NULL);
	ndjson_str(&out, NULL, key);
	ndjson_hex(&out, NULL, text, len);
	ndjson_array_end(&out);
}

static void put_number(const char *key, int64_t number)
{
	ndjson_array_begin(&out, NULL);
	ndjson_str(&out, NULL, key);
	ndjson_int(&out, NULL, number);
	ndjson_array_end(&out);
}

/* Writes the value that the step's struct holds for a key. */
static void put_field(const struct step *step, const struct key_spec *key)
{
	const void *field = (const char *)step + key->offset;
	const struct bytes *bytes = field;
	const struct texts *texts = field;
	size_t i;

	switch (key->type) {
	case KEY_TEXT:
	case KEY_FILE:
	case KEY_PROCESS:
		put_text(key->name, *(const char *const *)field, strlen(*(const char *const *)field));
		break;
	case KEY_TEXTS:
		for (i = 0; i < texts->count; i++)
			put_text(key->name, texts->list[i], strlen(texts->list[i]));
		if (texts->list[texts->count])
			exit(2); /* argv and envp end in NULL */
		break;
	case KEY_BYTES:
		put_text(key->name, bytes->data, bytes->len);
		break;
	case KEY_FLAG:
		put_number(key->name, *(const bool *)field);
		break;
	case KEY_INT:
	case KEY_NAMESPACE:
	case KEY_PROGRAM:
		put_number(key->name, *(const int *)field);
		break;
	case KEY_TIME:
		put_number(key->name, *(const int64_t *)field);
		break;
	}
}

static void put_fields(const struct step *step)
{
	const struct key_spec *keys = verb_specs[step->verb].keys;
	size_t i;

	for (i = 0; i < STEP_KEYS_MAX && keys[i].name; i++)
		if (step->given & 1u << i)
			put_field(step, &keys[i]);
}

static void do_steps(const char *data, size_t len)
{
	const struct step *step;
	struct steps steps;
	size_t i;

	ndjson_begin(&out, "steps");
	if (steps_parse(&steps, data, len)) {
		ndjson_str(&out, "error", steps.error.text);
		steps_free(&steps);
		return;
	}
	ndjson_array_begin(&out, "steps");
	for (i = 0; i < steps.count; i++) {
		step = &steps.list[i];
		ndjson_object_begin(&out, NULL);
		ndjson_int(&out, "line", step->line);
		ndjson_str(&out, "verb", verb_specs[step->verb].name);
		ndjson_int(&out, "phase", step->phase);
		if (step->at_ns == NO_TIME)
			ndjson_null(&out, "at_ns");
		else
			ndjson_int(&out, "at_ns", step->at_ns);
		ndjson_array_begin(&out, "values");
		put_fields(step);
		ndjson_array_end(&out);
		ndjson_object_end(&out);
	}
	ndjson_array_end(&out);
	steps_free(&steps);
}

static void do_request(char *data, size_t len)
{
	const char *why = NULL;
	int count = message_check(data, len, NLM_F_ACK, &why);

	ndjson_begin(&out, "request");
	ndjson_int(&out, "count", count);
	ndjson_str(&out, "why", why);
	message_number(data, len, 1000);
	ndjson_hex(&out, "numbered", data, len);
}

static void do_replies(const char *data, size_t len)
{
	struct nlmsghdr header;
	struct message_error error;
	size_t at = 0, next = 0;

	ndjson_begin(&out, "replies");
	ndjson_array_begin(&out, "messages");
	for (; message_next(data, len, &next, &header); at = next) {
		error = message_error(data + at, &header);
		ndjson_object_begin(&out, NULL);
		ndjson_int(&out, "type", header.nlmsg_type);
		ndjson_int(&out, "error", error.error);
		if (error.message)
			ndjson_strn(&out, "message", error.message, error.message_len);
		ndjson_int(&out, "operstate", message_operstate(data + at, &header, 7));
		ndjson_object_end(&out);
	}
	ndjson_array_end(&out);
	ndjson_uint(&out, "read", next);
}

struct packet {
	int64_t t_ns;
	uint32_t captured;
	uint32_t length;
};

static void do_pcap(char *data, size_t len)
{
	char *end = memchr(data, '\n', len);
	static char frame[PCAP_SNAPLEN + 16];
	struct packet packet;
	struct pcap_writer pcap;
	size_t at;
	int fd;

	if (!end)
		exit(2);
	*end = '\0';
	fd = open(data, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || pcap_writer_open(&pcap, fd))
		exit(2);
	for (at = (size_t)(end + 1 - data); at + sizeof(packet) <= len; at += sizeof(packet)) {
		memcpy(&packet, data + at, sizeof(packet));
		if (packet.captured > sizeof(frame))
			exit(2);
		memset(frame, (int)(at / sizeof(packet)), packet.captured);
		pcap_writer_add(&pcap, packet.t_ns, frame, packet.captured, packet.length);
	}
	pcap_writer_close(&pcap);
	ndjson_begin(&out, "pcap");
	ndjson_uint(&out, "packets", pcap.packets);
	ndjson_uint(&out, "bytes", pcap.bytes);
	ndjson_int(&out, "errno", pcap.error);
	ndjson_int(&out, "fsync_errno", pcap.fsync_error);
	ndjson_int(&out, "first_ns", pcap.first_ns);
	ndjson_int(&out, "last_ns", pcap.last_ns);
}

static void put_record(void *context, const struct trace_record *record)
{
	(void)context;
	ndjson_hex(&out, NULL, record, sizeof(*record));
}

/* Two format files, sctp_probe_path's and tcp_probe's, each with a NUL byte behind it; then one page. */
static void do_trace(const char *data, size_t len)
{
	struct trace_event events[2] = {{.kind = TRACE_SCTP_PATH}, {.kind = TRACE_TCP}};
	const char *at = data, *end, *missing;
	uint8_t *page;
	size_t i, left;
	int64_t lost;

	ndjson_begin(&out, "trace");
	for (i = 0; i < 2; i++, at = end + 1) {
		end = memchr(at, '\0', len - (size_t)(at - data));
		if (!end)
			exit(2);
		if (trace_read_format(&events[i], at, &missing)) {
			ndjson_str(&out, "missing", missing);
			return;
		}
	}
	left = len - (size_t)(at - data);
	page = malloc(left ? left : 1);
	if (!page)
		exit(1);
	memcpy(page, at, left);
	ndjson_array_begin(&out, "records");
	lost = trace_read_page(page, left, events, 2, put_record, NULL);
	ndjson_array_end(&out);
	ndjson_int(&out, "lost", lost);
	free(page);
}

static void do_text(const char *data, size_t len)
{
	ndjson_begin(&out, "text");
	ndjson_strn(&out, "text", data, len);
}

int main(void)
{
	char line[64], name[16], *data;
	size_t len;

	ndjson_init(&out, STDOUT_FILENO);
	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "%15s %zu", name, &len) != 2 || len > (1u << 28))
			return 2;
		/* exactly as long as the input: a read beyond it is one that ASan sees */
		data = malloc(len ? len : 1);
		if (!data || fread(data, 1, len, stdin) != len)
			return 2;
		if (!strcmp(name, "steps"))
			do_steps(data, len);
		else if (!strcmp(name, "request"))
			do_request(data, len);
		else if (!strcmp(name, "replies"))
			do_replies(data, len);
		else if (!strcmp(name, "text"))
			do_text(data, len);
		else if (!strcmp(name, "pcap"))
			do_pcap(data, len);
		else if (!strcmp(name, "trace"))
			do_trace(data, len);
		else
			return 2;
		free(data);
		if (ndjson_end(&out))
			return 1;
	}
	ndjson_free(&out);
	return 0;
}
