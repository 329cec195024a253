// SPDX-License-Identifier: Apache-2.0
/*
 * pcapng files: https://datatracker.ietf.org/doc/draft-ietf-opsawg-pcapng/ (blocks: section 4, options:
 * 3.5). Blocks of other types are skipped by their length. Reading ends at a block with an impossible
 * length, since the begin of the next block is unknown then; an option with a wrong length ends only its
 * own list.
 */
#include <string.h>

#include "pcapng.h"

enum {
	BLOCK_INTERFACE = 1,
	BLOCK_PACKET_OLD = 2,
	BLOCK_PACKET_SIMPLE = 3,
	BLOCK_STATISTICS = 5,
	BLOCK_PACKET = 6,
	BLOCK_SECTION = 0x0a0d0d0a,
};
enum {
	BLOCK_HEADER = 8,
	BLOCK_FRAME = 12, /* header and trailing length */
	SECTION_BODY = 16,
	INTERFACE_BODY = 8,
	STATISTICS_BODY = 12,
	PACKET_BODY = 20, /* of both packet blocks with a time */
	BLOCK_MAX = 16 << 20,
};
enum { OPTION_END = 0, OPTION_NAME = 2, OPTION_RESOLUTION = 9, OPTION_OFFSET = 14, OPTION_DROPPED = 5 };
enum { RESOLUTION_BINARY = 0x80, RESOLUTION_DIGITS = 0x7f, NANO_DIGITS = 9, TICK_DIGITS = 19 };

static const uint32_t BYTE_ORDER_MAGIC = 0x1a2b3c4d;

/* A block's body. */
struct block {
	const uint8_t *at;
	uint32_t type, bytes;
};

/*
 * One option: true while there is one. `bytes` is what is left of the list; *wrong: a length that cannot be
 * right.
 */
static bool next_option(const struct capture_file *p, const uint8_t **at, uint32_t *bytes, uint16_t *code,
			uint16_t *length, bool *wrong)
{
	uint32_t whole;

	if (*bytes < 4) {
		*wrong |= *bytes > 0;
		return false;
	}
	*code = file_get16(p, *at);
	*length = file_get16(p, *at + 2);
	if (*code == OPTION_END)
		return false;
	whole = 4 + ((*length + 3u) & ~3u);
	if (whole > *bytes) {
		*wrong = true;
		return false;
	}
	*at += whole;
	*bytes -= whole;
	return true;
}

static void set_resolution(struct capture_interface *interface, uint8_t resolution)
{
	uint64_t power = 1;

	interface->resolution = resolution;
	interface->multiply = interface->divide = 0;
	if (resolution & RESOLUTION_BINARY)
		return;
	if (resolution <= NANO_DIGITS) {
		for (uint8_t n = resolution; n < NANO_DIGITS; n++)
			power *= 10;
		interface->multiply = power;
	} else if (resolution - NANO_DIGITS <= TICK_DIGITS) {
		for (uint8_t n = NANO_DIGITS; n < resolution; n++)
			power *= 10;
		interface->divide = power;
	}
}

/* Ticks of this interface's clock as ns since 1970, at the nearest end where they lie outside. */
static int64_t time_of(const struct capture_interface *interface, uint64_t ticks)
{
	__int128 ns = 0;

	if (interface->multiply)
		ns = (__int128)ticks * interface->multiply;
	else if (interface->divide)
		ns = ticks / interface->divide;
	else if (interface->resolution & RESOLUTION_BINARY)
		ns = (__int128)ticks * 1000000000 >> (interface->resolution & RESOLUTION_DIGITS);
	ns += (__int128)interface->offset_s * 1000000000;
	if (ns > CAPTURE_LAST_NS)
		return CAPTURE_LAST_NS;
	return ns < CAPTURE_FIRST_NS ? CAPTURE_FIRST_NS : (int64_t)ns;
}

static bool take_section(struct capture_file *p, const struct block *b)
{
	uint16_t major, minor;

	if (b->bytes < SECTION_BODY)
		return capture_file_stop(p, "a section header of %u bytes: not read on from there", b->bytes);
	major = file_get16(p, b->at + 4);
	minor = file_get16(p, b->at + 6);
	if (major != 1 || (minor && minor != 2)) /* some programs write 1.2, which is 1.0 */
		return capture_file_stop(p, "a section of pcapng version %u.%u: not read on from there",
					 major, minor);
	p->section = p->interface_count;
	return true;
}

static bool take_interface(struct capture_file *p, const struct block *b)
{
	struct capture_interface *interface;
	const uint8_t *at = b->at + INTERFACE_BODY;
	uint32_t bytes = b->bytes - INTERFACE_BODY;
	uint16_t code, length;

	if (b->bytes < INTERFACE_BODY)
		return capture_file_stop(p, "an interface description of %u bytes: not read on from there",
					 b->bytes);
	interface = capture_file_interface_new(p);
	if (!interface)
		return capture_file_stop(p,
					 "more than %d interfaces, or out of memory: not read on from there",
					 CAPTURE_INTERFACES_MAX);
	interface->link_type = file_get16(p, b->at);
	interface->snaplen = file_get32(p, b->at + 4);
	while (next_option(p, &at, &bytes, &code, &length, &interface->malformed)) {
		const uint8_t *value = at - ((length + 3u) & ~3u);

		if (code == OPTION_NAME)
			memcpy(interface->name, value, length < CAPTURE_NAME ? length : CAPTURE_NAME);
		else if (code == OPTION_RESOLUTION && length == 1)
			set_resolution(interface, value[0]);
		else if (code == OPTION_OFFSET && length == 8)
			interface->offset_s = (int64_t)file_get64(p, value);
		else if (code == OPTION_RESOLUTION || code == OPTION_OFFSET)
			interface->malformed = true;
	}
	if (p->interface_count == 1) {
		uint8_t digits = interface->resolution & RESOLUTION_DIGITS;

		p->link_type = interface->link_type;
		p->snaplen = interface->snaplen;
		/* 2^-20 s is still coarser than a microsecond would need */
		p->nanosecond = interface->resolution & RESOLUTION_BINARY ? digits > 20 : digits > 6;
	}
	return true;
}

static bool take_statistics(struct capture_file *p, const struct block *b)
{
	const uint8_t *at = b->at + STATISTICS_BODY;
	uint32_t bytes = b->bytes - STATISTICS_BODY, id;
	uint16_t code, length;
	bool wrong = false;

	if (b->bytes < STATISTICS_BODY)
		return capture_file_stop(p, "interface statistics of %u bytes: not read on from there",
					 b->bytes);
	id = file_get32(p, b->at);
	if (id >= p->interface_count - p->section)
		return true; /* of an interface that is not there: no packet hangs on it */
	while (next_option(p, &at, &bytes, &code, &length, &wrong)) {
		if (code != OPTION_DROPPED || length != 8)
			continue;
		p->interfaces[p->section + id].dropped = file_get64(p, at - 8);
		p->interfaces[p->section + id].dropped_known = true;
	}
	return true;
}

/* A packet of one of the three kinds. */
static bool take_packet(struct capture_file *p, const struct block *b, struct record *r)
{
	const struct capture_interface *interface;
	uint32_t id = 0, header = PACKET_BODY;
	uint64_t ticks;

	if (b->type == BLOCK_PACKET_SIMPLE) {
		header = 4;
		if (b->bytes < header)
			return capture_file_stop(p, "a packet block of %u bytes: not read on from there",
						 b->bytes);
		r->length = file_get32(p, b->at);
	} else {
		if (b->bytes < header)
			return capture_file_stop(p, "a packet block of %u bytes: not read on from there",
						 b->bytes);
		id = b->type == BLOCK_PACKET ? file_get32(p, b->at) : file_get16(p, b->at);
		r->captured = file_get32(p, b->at + 12);
		r->length = file_get32(p, b->at + 16);
	}
	if (id >= p->interface_count - p->section)
		return capture_file_stop(
		    p, "a packet of interface %u, which no block describes: not read on from there", id);
	r->interface = p->section + id;
	interface = &p->interfaces[r->interface];
	r->link_type = interface->link_type;
	r->untimed = b->type == BLOCK_PACKET_SIMPLE;
	if (r->untimed) {
		r->captured = b->bytes - header;
		if (interface->snaplen && interface->snaplen < r->captured)
			r->captured = interface->snaplen;
		if (r->length < r->captured)
			r->captured = r->length; /* the rest is padding */
		r->time_ns = p->last_ns;
	} else {
		if (r->captured > b->bytes - header)
			return capture_file_stop(
			    p, "a packet block of %u bytes claims %u captured bytes: not read on from there",
			    b->bytes, r->captured);
		ticks = (uint64_t)file_get32(p, b->at + 4) << 32 | file_get32(p, b->at + 8);
		r->time_ns = p->last_ns = time_of(interface, ticks);
	}
	if (r->length < r->captured)
		r->length = r->captured;
	r->at_limit = r->length == r->captured && r->length == interface->snaplen;
	r->data = b->at + header;
	r->big_endian = p->section_swapped;
	return true;
}

/* The next block, whole; it stays valid until the next one. */
static bool next_block(struct capture_file *p, struct block *b)
{
	const uint8_t *at = stream_peek(&p->stream, BLOCK_FRAME);
	uint32_t type, length, again, order;

	if (!at)
		return capture_file_end(p, "block's header");
	memcpy(&type, at, sizeof(type)); /* a section header's type reads the same in both orders */
	if (type == BLOCK_SECTION) {
		memcpy(&order, at + BLOCK_HEADER, sizeof(order));
		if (order != BYTE_ORDER_MAGIC && order != __builtin_bswap32(BYTE_ORDER_MAGIC))
			return capture_file_stop(p,
						 "a section header of no byte order: not read on from there");
		p->section_swapped = order != BYTE_ORDER_MAGIC;
	}
	b->type = file_get32(p, at);
	length = file_get32(p, at + 4);
	if (length < BLOCK_FRAME || length > BLOCK_MAX || length % 4)
		return capture_file_stop(p, "a block claims %u bytes: not read on from there", length);
	at = stream_peek(&p->stream, length);
	if (!at)
		return capture_file_end(p, "block");
	again = file_get32(p, at + length - 4);
	if (again != length)
		return capture_file_stop(p, "a block's two lengths are %u and %u: not read on from there",
					 length, again);
	b->at = at + BLOCK_HEADER;
	b->bytes = length - BLOCK_FRAME;
	stream_take(&p->stream, length);
	return true;
}

bool pcapng_next(struct capture_file *p, struct record *r)
{
	struct block b;
	bool went_well = true;

	while (went_well && next_block(p, &b)) {
		switch (b.type) {
		case BLOCK_PACKET:
		case BLOCK_PACKET_SIMPLE:
		case BLOCK_PACKET_OLD:
			return take_packet(p, &b, r);
		case BLOCK_SECTION:
			went_well = take_section(p, &b);
			break;
		case BLOCK_INTERFACE:
			went_well = take_interface(p, &b);
			break;
		case BLOCK_STATISTICS:
			went_well = take_statistics(p, &b);
			break;
		default:
			break;
		}
	}
	return false;
}

bool pcapng_recognised(const uint8_t *header)
{
	uint32_t type;

	memcpy(&type, header, sizeof(type)); /* reads the same in both byte orders */
	return type == BLOCK_SECTION;
}

bool pcapng_start(struct capture_file *p)
{
	struct block b;

	p->blocks = true;
	if (!next_block(p, &b) || !take_section(p, &b))
		return false;
	p->swapped = p->section_swapped;
	return true;
}
