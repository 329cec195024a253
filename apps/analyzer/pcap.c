/* pcap files: https://www.ietf.org/archive/id/draft-ietf-opsawg-pcap-04.html */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
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

struct pcap_interface *pcap_interface_new(struct pcap *p)
{
	struct pcap_interface *interfaces;
	uint32_t capacity = p->interface_capacity ? p->interface_capacity * 2 : 1;

	if (p->interface_count >= PCAP_INTERFACES_MAX)
		return NULL;
	if (p->interface_count == p->interface_capacity) {
		interfaces = realloc(p->interfaces, capacity * sizeof(*interfaces));
		if (!interfaces)
			return NULL;
		p->interfaces = interfaces;
		p->interface_capacity = capacity;
	}
	interfaces = &p->interfaces[p->interface_count++];
	*interfaces = (struct pcap_interface){.resolution = 6, .multiply = 1000};
	return interfaces;
}

void pcap_close(struct pcap *p)
{
	stream_close(&p->stream);
	free(p->interfaces);
	p->interfaces = NULL;
	p->interface_count = p->interface_capacity = 0;
}

bool pcap_start(struct pcap *p)
{
	const uint8_t *header = stream_peek(&p->stream, FILE_HEADER);
	struct pcap_interface *interface;
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
	if (magic == MAGIC_PCAPNG)
		return pcapng_start(p);
	if (magic != MAGIC_US && magic != MAGIC_NS) {
		snprintf(p->trouble, sizeof(p->trouble),
			 "not a pcap or pcapng file (it begins with %02x %02x %02x %02x)", header[0],
			 header[1], header[2], header[3]);
		return false;
	}
	p->nanosecond = magic == MAGIC_NS;
	p->snaplen = get32(p, header + 16);
	p->link_type = (uint16_t)(get32(p, header + 20) & 0xffff);
	interface = pcap_interface_new(p);
	if (!interface) {
		snprintf(p->trouble, sizeof(p->trouble), "out of memory");
		return false;
	}
	interface->link_type = p->link_type;
	interface->snaplen = p->snaplen;
	interface->resolution = p->nanosecond ? 9 : 6;
	stream_take(&p->stream, FILE_HEADER);
	return true;
}

bool pcap_stop(struct pcap *p, const char *format, ...)
{
	va_list list;

	p->cut_off = true;
	va_start(list, format);
	vsnprintf(p->trouble, sizeof(p->trouble), format, list);
	va_end(list);
	return false;
}

bool pcap_end(struct pcap *p, const char *inside)
{
	const char *trouble = p->stream.trouble;
	size_t left = stream_left(&p->stream);

	if (left)
		return pcap_stop(p, "cut off in a %s (%zu bytes of it are there)%s%s", inside, left,
				 trouble ? "; " : "", trouble ? trouble : "");
	if (trouble)
		return pcap_stop(p, "cut off after a whole record: %s", trouble);
	return false;
}

bool pcap_next(struct pcap *p, struct record *r)
{
	const uint8_t *header;
	uint32_t length;

	if (p->cut_off)
		return false;
	if (p->blocks)
		return pcapng_next(p, r);
	header = stream_peek(&p->stream, RECORD_HEADER);
	if (!header)
		return pcap_end(p, "record's header");
	r->captured = get32(p, header + 8);
	length = get32(p, header + 12);
	if (r->captured > RECORD_MAX)
		return pcap_stop(p, "a record claims %u captured bytes: not read on from there", r->captured);
	header = stream_peek(&p->stream, RECORD_HEADER + (size_t)r->captured);
	if (!header)
		return pcap_end(p, "record's data");
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
