// SPDX-License-Identifier: Apache-2.0
/* pcap files: https://www.ietf.org/archive/id/draft-ietf-opsawg-pcap-04.html */
#include <stdio.h>
#include <string.h>

#include "pcap.h"

enum {
	FILE_HEADER = 24,
	RECORD_HEADER = 16,
	WHOLE_FRAME = 1514,
	WHOLE_FRAME_TAGGED = 1522,
	RECORD_MAX = 16 << 20, /* a record that claims more is not believed; libpcap's own limit is 256 KiB */
};

static const uint32_t MAGIC_US = 0xa1b2c3d4, MAGIC_NS = 0xa1b23c4d;

bool pcap_recognised(const uint8_t *header)
{
	uint32_t magic, swapped;

	memcpy(&magic, header, sizeof(magic));
	swapped = __builtin_bswap32(magic);
	return magic == MAGIC_US || magic == MAGIC_NS || swapped == MAGIC_US || swapped == MAGIC_NS;
}

/* As libpcap has it (savefile.c, pcap_check_header): version 2.2 wrote the length on the wire first; 2.3, and
 * one vendor's 543.0, sometimes did. */
static void set_lengths_order(struct capture_file *p, uint16_t major, uint16_t minor)
{
	p->lengths_swapped = (major == 2 && minor < 3) || (major == 543 && !minor);
	p->lengths_maybe_swapped = major == 2 && minor == 3;
}

/* A record's two lengths. */
static void lengths(const struct capture_file *p, const uint8_t *header, uint32_t *captured, uint32_t *length)
{
	uint32_t first = file_get32(p, header + 8), second = file_get32(p, header + 12);
	bool swapped = p->lengths_swapped || (p->lengths_maybe_swapped && first > second);

	*captured = swapped ? second : first;
	*length = swapped ? first : second;
}

/*
 * Programs that convert old formats cut packets and write the cut length as the one on the wire. Then several
 * records are as long as the longest and none says that it was longer. That may be so without any cut where
 * the longest is a whole Ethernet frame. Looks at the records that are in memory already. 0: nothing of the
 * kind.
 */
static uint32_t limit_of(const struct capture_file *p)
{
	const uint8_t *at = p->stream.buffer + p->stream.begin;
	size_t left = stream_left(&p->stream);
	uint32_t most = 0, times = 0;

	while (left >= RECORD_HEADER) {
		uint32_t captured, length;

		lengths(p, at, &captured, &length);
		if (captured > left - RECORD_HEADER)
			break;
		if (length > captured)
			return 0;
		if (captured > most)
			times = 0;
		if (captured >= most) {
			most = captured;
			times++;
		}
		at += RECORD_HEADER + (size_t)captured;
		left -= RECORD_HEADER + (size_t)captured;
	}
	return times > 1 && (most < WHOLE_FRAME || most > WHOLE_FRAME_TAGGED) ? most : 0;
}

bool pcap_start(struct capture_file *p)
{
	struct capture_interface *interface = capture_file_interface_new(p);
	const uint8_t *header;
	uint16_t major, minor;
	uint32_t magic;

	(void)stream_fill(&p->stream, STREAM_BLOCK); /* for limit_of(): a pipe gives less at a time */
	header = stream_peek(&p->stream, FILE_HEADER);
	if (!interface) {
		snprintf(p->trouble, sizeof(p->trouble), "out of memory");
		return false;
	}
	memcpy(&magic, header, sizeof(magic));
	p->swapped = p->section_swapped = magic != MAGIC_US && magic != MAGIC_NS;
	p->nanosecond = file_get32(p, header) == MAGIC_NS;
	p->snaplen = file_get32(p, header + 16);
	p->link_type = (uint16_t)(file_get32(p, header + 20) & 0xffff);
	major = file_get16(p, header + 4);
	minor = file_get16(p, header + 6);
	if (!(major == 2 && minor <= 4) && !(major == 543 && !minor)) { /* as libpcap has it */
		snprintf(p->trouble, sizeof(p->trouble), "pcap version %u.%u: only 2.0 to 2.4 are known",
			 major, minor);
		return false;
	}
	set_lengths_order(p, major, minor);
	interface->link_type = p->link_type;
	interface->snaplen = p->snaplen;
	interface->resolution = p->nanosecond ? 9 : 6;
	stream_take(&p->stream, FILE_HEADER);
	p->limit = limit_of(p);
	return true;
}

bool pcap_next(struct capture_file *p, struct record *r)
{
	const uint8_t *header;
	uint32_t length;

	header = stream_peek(&p->stream, RECORD_HEADER);
	if (!header)
		return capture_file_end(p, "record's header");
	lengths(p, header, &r->captured, &length);
	if (r->captured > RECORD_MAX)
		return capture_file_stop(p, "a record claims %u captured bytes: not read on from there",
					 r->captured);
	header = stream_peek(&p->stream, RECORD_HEADER + (size_t)r->captured);
	if (!header)
		return capture_file_end(p, "record's data");
	r->time_ns = (int64_t)file_get32(p, header) * 1000000000 +
		     (int64_t)file_get32(p, header + 4) * (p->nanosecond ? 1 : 1000);
	r->length = length > r->captured ? length : r->captured;
	r->data = header + RECORD_HEADER;
	r->at_limit = length == r->captured && (length == p->limit || length == p->snaplen);
	r->link_type = p->link_type;
	r->interface = 0;
	r->untimed = false;
	r->big_endian = p->swapped;
	stream_take(&p->stream, RECORD_HEADER + (size_t)r->captured);
	return true;
}
