/* pcap files: https://www.ietf.org/archive/id/draft-ietf-opsawg-pcap-04.html */
#include <stdio.h>
#include <string.h>

#include "pcap.h"

enum {
	FILE_HEADER = 24,
	RECORD_HEADER = 16,
	RECORD_MAX = 16 << 20, /* a record that claims more is not believed; libpcap's own limit is 256 KiB */
};

static const uint32_t MAGIC_US = 0xa1b2c3d4, MAGIC_NS = 0xa1b23c4d;

static uint32_t get32(const struct capture_file *p, const uint8_t *at)
{
	uint32_t v;

	memcpy(&v, at, sizeof(v));
	return p->swapped ? __builtin_bswap32(v) : v;
}

bool pcap_recognised(const uint8_t *header)
{
	uint32_t magic, swapped;

	memcpy(&magic, header, sizeof(magic));
	swapped = __builtin_bswap32(magic);
	return magic == MAGIC_US || magic == MAGIC_NS || swapped == MAGIC_US || swapped == MAGIC_NS;
}

bool pcap_start(struct capture_file *p)
{
	const uint8_t *header = stream_peek(&p->stream, FILE_HEADER);
	struct capture_interface *interface = capture_file_interface_new(p);
	uint32_t magic;

	if (!interface) {
		snprintf(p->trouble, sizeof(p->trouble), "out of memory");
		return false;
	}
	memcpy(&magic, header, sizeof(magic));
	p->swapped = magic != MAGIC_US && magic != MAGIC_NS;
	p->nanosecond = get32(p, header) == MAGIC_NS;
	p->snaplen = get32(p, header + 16);
	p->link_type = (uint16_t)(get32(p, header + 20) & 0xffff);
	interface->link_type = p->link_type;
	interface->snaplen = p->snaplen;
	interface->resolution = p->nanosecond ? 9 : 6;
	stream_take(&p->stream, FILE_HEADER);
	return true;
}

bool pcap_next(struct capture_file *p, struct record *r)
{
	const uint8_t *header;
	uint32_t length;

	header = stream_peek(&p->stream, RECORD_HEADER);
	if (!header)
		return capture_file_end(p, "record's header");
	r->captured = get32(p, header + 8);
	length = get32(p, header + 12);
	if (r->captured > RECORD_MAX)
		return capture_file_stop(p, "a record claims %u captured bytes: not read on from there",
					 r->captured);
	header = stream_peek(&p->stream, RECORD_HEADER + (size_t)r->captured);
	if (!header)
		return capture_file_end(p, "record's data");
	r->time_ns = (int64_t)get32(p, header) * 1000000000 +
		     (int64_t)get32(p, header + 4) * (p->nanosecond ? 1 : 1000);
	r->length = length > r->captured ? length : r->captured;
	r->data = header + RECORD_HEADER;
	r->link_type = p->link_type;
	r->interface = 0;
	r->untimed = false;
	stream_take(&p->stream, RECORD_HEADER + (size_t)r->captured);
	return true;
}
