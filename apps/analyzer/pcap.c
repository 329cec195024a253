/* pcap files: https://www.ietf.org/archive/id/draft-ietf-opsawg-pcap-04.html */
#include <stdio.h>
#include <string.h>

#include "pcap.h"

enum {
	FILE_HEADER = 24,
	RECORD_HEADER = 16,
	RECORD_MAX = 16 << 20, /* a record that claims more is not believed; libpcap's own limit is 256 KiB */
};

static const uint32_t MAGIC_US = 0xa1b2c3d4, MAGIC_NS = 0xa1b23c4d, MAGIC_PCAPNG = 0x0a0d0d0a;

static uint32_t get32(const struct pcap *p, const uint8_t *at)
{
	uint32_t v;

	memcpy(&v, at, sizeof(v));
	return p->swapped ? __builtin_bswap32(v) : v;
}

bool pcap_start(struct pcap *p)
{
	const uint8_t *header = stream_peek(&p->stream, FILE_HEADER);
	uint32_t magic, swapped;

	if (!header) {
		snprintf(p->trouble, sizeof(p->trouble), "too short for a capture (%zu bytes)%s%s",
			 stream_left(&p->stream), p->stream.trouble ? ": " : "",
			 p->stream.trouble ? p->stream.trouble : "");
		return false;
	}
	memcpy(&magic, header, sizeof(magic));
	swapped = __builtin_bswap32(magic);
	p->swapped = swapped == MAGIC_US || swapped == MAGIC_NS;
	if (p->swapped)
		magic = swapped;
	if (magic != MAGIC_US && magic != MAGIC_NS) {
		snprintf(p->trouble, sizeof(p->trouble),
			 "not a pcap file (it begins with %02x %02x %02x %02x%s)", header[0], header[1],
			 header[2], header[3],
			 magic == MAGIC_PCAPNG ? ": pcapng; convert it with `editcap -F nsecpcap`" : "");
		return false;
	}
	p->nanosecond = magic == MAGIC_NS;
	p->snaplen = get32(p, header + 16);
	p->link_type = (uint16_t)(get32(p, header + 20) & 0xffff);
	stream_take(&p->stream, FILE_HEADER);
	return true;
}

static bool end_of_file(struct pcap *p, const char *inside)
{
	size_t left = stream_left(&p->stream);

	if (left) {
		p->cut_off = true;
		snprintf(p->trouble, sizeof(p->trouble),
			 "cut off in a record's %s (%zu bytes of it are there)%s%s", inside, left,
			 p->stream.trouble ? "; " : "", p->stream.trouble ? p->stream.trouble : "");
	} else if (p->stream.trouble) {
		p->cut_off = true;
		snprintf(p->trouble, sizeof(p->trouble), "cut off after a whole record: %s",
			 p->stream.trouble);
	}
	return false;
}

bool pcap_next(struct pcap *p, struct record *r)
{
	const uint8_t *header;
	uint32_t length;

	if (p->cut_off)
		return false;
	header = stream_peek(&p->stream, RECORD_HEADER);
	if (!header)
		return end_of_file(p, "header");
	r->captured = get32(p, header + 8);
	length = get32(p, header + 12);
	if (r->captured > RECORD_MAX) {
		p->cut_off = true;
		snprintf(p->trouble, sizeof(p->trouble),
			 "a record claims %u captured bytes: not read on from there", r->captured);
		return false;
	}
	header = stream_peek(&p->stream, RECORD_HEADER + (size_t)r->captured);
	if (!header)
		return end_of_file(p, "data");
	r->time_ns = (int64_t)get32(p, header) * 1000000000 +
		     (int64_t)get32(p, header + 4) * (p->nanosecond ? 1 : 1000);
	r->length = length > r->captured ? length : r->captured;
	r->data = header + RECORD_HEADER;
	stream_take(&p->stream, RECORD_HEADER + (size_t)r->captured);
	return true;
}
