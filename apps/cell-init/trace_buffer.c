// SPDX-License-Identifier: Apache-2.0
/* The binary form of the kernel's ring buffer: kernel/trace/ring_buffer.c and include/linux/ring_buffer.h. */
#include "trace_buffer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* The page's header: time stamp of its first event, and how much of it is used with two flags. */
#define HEADER_BYTES  16
#define LENGTH_MASK   UINT64_C(0xfffff)
#define MISSED_EVENTS (UINT64_C(1) << 31)
#define MISSED_STORED (UINT64_C(1) << 30)

/* type_len of an event (enum ring_buffer_type) */
#define TYPE_DATA_MAX	 28
#define TYPE_PADDING	 29
#define TYPE_TIME_EXTEND 30
#define TYPE_TIME_STAMP	 31
#define DELTA_BITS	 27

/* The fields of an event that are read; their offsets are in its format file. */
static const char *const sctp_fields[] = {"asoc",   "primary",	"ipaddr",      "state",
					  "cwnd",   "ssthresh", "flight_size", "partial_bytes_acked",
					  "pathmtu"};
static const char *const tcp_fields[] = {"sock_cookie", "daddr",    "sport",   "dport",
					 "snd_cwnd",	"ssthresh", "snd_nxt", "snd_una",
					 "data_len",	"snd_wnd",  "srtt"};

enum {
	SCTP_ASOC,
	SCTP_PRIMARY,
	SCTP_ADDRESS,
	SCTP_STATE,
	SCTP_CWND,
	SCTP_SSTHRESH,
	SCTP_FLIGHT,
	SCTP_ACKED,
	SCTP_MTU
};
enum {
	TCP_COOKIE,
	TCP_DADDR,
	TCP_SPORT,
	TCP_DPORT,
	TCP_CWND,
	TCP_SSTHRESH,
	TCP_NXT,
	TCP_UNA,
	TCP_LENGTH,
	TCP_WINDOW,
	TCP_SRTT
};

/* "\tfield:__u32 cwnd;\toffset:44;\tsize:4;\tsigned:0;": an array's name ends in "[N]". */
static int find_field(const char *text, const char *name, struct trace_field *field)
{
	size_t len = strlen(name);
	const char *line, *end, *at;

	for (line = strstr(text, "field:"); line; line = strstr(line + 1, "field:")) {
		end = strchr(line, ';');
		if (!end)
			return -1;
		for (at = end; at > line && at[-1] != ' '; at--)
			;
		if (strncmp(at, name, len) != 0 || (at[len] != ';' && at[len] != '['))
			continue;
		return sscanf(end, "; offset:%zu; size:%zu;", &field->offset, &field->size) == 2 ? 0 : -1;
	}
	return -1;
}

int trace_read_format(struct trace_event *event, const char *text, const char **missing)
{
	bool tcp = event->kind == TRACE_TCP;
	const char *const *names = tcp ? tcp_fields : sctp_fields;
	size_t count =
	    tcp ? sizeof(tcp_fields) / sizeof(*tcp_fields) : sizeof(sctp_fields) / sizeof(*sctp_fields);
	const char *id = strstr(text, "ID: ");
	size_t i;

	*missing = "ID";
	if (!id || sscanf(id, "ID: %u", &event->id) != 1)
		return -1;
	for (i = 0; i < count; i++) {
		*missing = names[i];
		if (find_field(text, names[i], &event->fields[i]))
			return -1;
	}
	return 0;
}

struct payload {
	const uint8_t *data;
	size_t len;
	const struct trace_event *event;
};

static uint64_t number(const struct payload *payload, int field)
{
	const struct trace_field *at = &payload->event->fields[field];
	uint64_t value = 0;

	/* little endian only, as is all of netwarp (x86-64) */
	if (at->size <= sizeof(value) && at->offset + at->size <= payload->len)
		memcpy(&value, payload->data + at->offset, at->size);
	return value;
}

static void address(const struct payload *payload, int field, struct trace_record *record)
{
	const struct trace_field *at = &payload->event->fields[field];
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} found;
	size_t len = at->size < sizeof(found) ? at->size : sizeof(found);

	memset(&found, 0, sizeof(found));
	if (at->offset + len <= payload->len)
		memcpy(&found, payload->data + at->offset, len);
	record->peer_port = ntohs(found.v4.sin_port);
	if (found.any.sa_family == AF_INET6) {
		record->family = 6;
		memcpy(record->address, &found.v6.sin6_addr, 16);
	} else {
		record->family = 4;
		memcpy(record->address, &found.v4.sin_addr, 4);
	}
}

static void decode_sctp(const struct payload *payload, struct trace_record *record)
{
	record->connection = number(payload, SCTP_ASOC);
	record->primary = number(payload, SCTP_PRIMARY) != 0;
	record->state = (uint32_t)number(payload, SCTP_STATE);
	record->cwnd = (uint32_t)number(payload, SCTP_CWND);
	record->ssthresh = (uint32_t)number(payload, SCTP_SSTHRESH);
	record->flight = (uint32_t)number(payload, SCTP_FLIGHT);
	record->acked = (uint32_t)number(payload, SCTP_ACKED);
	record->mtu = (uint32_t)number(payload, SCTP_MTU);
	address(payload, SCTP_ADDRESS, record);
}

static void decode_tcp(const struct payload *payload, struct trace_record *record)
{
	record->connection = number(payload, TCP_COOKIE);
	record->cwnd = (uint32_t)number(payload, TCP_CWND);
	record->ssthresh = (uint32_t)number(payload, TCP_SSTHRESH);
	record->flight = (uint32_t)number(payload, TCP_NXT) - (uint32_t)number(payload, TCP_UNA);
	record->acked = (uint32_t)number(payload, TCP_LENGTH);
	record->mtu = (uint32_t)number(payload, TCP_WINDOW);
	record->state = (uint32_t)number(payload, TCP_SRTT);
	address(payload, TCP_DADDR, record);
	record->local_port = (uint16_t)number(payload, TCP_SPORT);
	record->peer_port = (uint16_t)number(payload, TCP_DPORT);
}

static const struct trace_event *find_event(const uint8_t *data, size_t len, const struct trace_event *events,
					    size_t count)
{
	uint16_t id;
	size_t i;

	if (len < sizeof(id))
		return NULL;
	memcpy(&id, data, sizeof(id));
	for (i = 0; i < count; i++)
		if (events[i].id == id)
			return &events[i];
	return NULL;
}

static uint32_t word(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

int64_t trace_read_page(const uint8_t *page, size_t size, const struct trace_event *events, size_t count,
			void (*take)(void *context, const struct trace_record *record), void *context)
{
	uint64_t t_ns, commit, missed = 0;
	size_t at = HEADER_BYTES, end, len, skip;
	struct trace_record record;
	struct payload payload;
	uint32_t type, delta;

	if (size < HEADER_BYTES)
		return -1;
	memcpy(&t_ns, page, sizeof(t_ns));
	memcpy(&commit, page + 8, sizeof(commit));
	end = HEADER_BYTES + (size_t)(commit & LENGTH_MASK);
	if (end > size)
		return -1;
	if (commit & MISSED_EVENTS) {
		missed = 1;
		if (commit & MISSED_STORED && end + sizeof(missed) <= size)
			memcpy(&missed, page + end, sizeof(missed));
	}
	while (at + 4 <= end) {
		type = word(page + at) & 31;
		delta = word(page + at) >> 5;
		if (type == TYPE_PADDING && delta == 0)
			break;
		/* all but short data have a second word */
		if ((type == 0 || type > TYPE_DATA_MAX) && at + 8 > end)
			return -1;
		skip = 4;
		if (type == TYPE_TIME_EXTEND || type == TYPE_TIME_STAMP) {
			uint64_t more = ((uint64_t)word(page + at + 4) << DELTA_BITS) + delta;

			/* a time stamp has 59 bits: the rest stays as it was */
			t_ns = type == TYPE_TIME_EXTEND ? t_ns + more
							: (t_ns & ~((UINT64_C(1) << 59) - 1)) | more;
			at += 8;
			continue;
		}
		t_ns += delta;
		if (type == 0) {
			len = word(page + at + 4);
			skip = 8;
			if (len < 4)
				return -1;
			len -= 4;
		} else if (type == TYPE_PADDING) {
			len = word(page + at + 4);
		} else {
			len = (size_t)type * 4;
		}
		if (len > end - at - skip)
			return -1;
		payload.data = page + at + skip;
		payload.len = len;
		payload.event = type == TYPE_PADDING ? NULL : find_event(payload.data, len, events, count);
		at += skip + len;
		if (!payload.event)
			continue;
		memset(&record, 0, sizeof(record));
		record.t_ns = (int64_t)t_ns;
		record.kind = (uint8_t)payload.event->kind;
		if (payload.event->kind == TRACE_TCP)
			decode_tcp(&payload, &record);
		else
			decode_sctp(&payload, &record);
		take(context, &record);
	}
	return (int64_t)missed;
}
