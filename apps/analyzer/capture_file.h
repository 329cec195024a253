/* SPDX-License-Identifier: Apache-2.0 */
/* An open capture file, its interfaces and its records, the same for pcap and pcapng. */
#ifndef ANALYZER_CAPTURE_FILE_H
#define ANALYZER_CAPTURE_FILE_H

#include "stream.h"

#include <string.h>

/* The times that are read: 1933 to 2106, the last of pcap. Any two of them are less than 2^63 ns apart. */
static const int64_t CAPTURE_FIRST_NS = -(INT64_C(1) << 60),
		     CAPTURE_LAST_NS = INT64_C(4300000000) * 1000000000;

enum { CAPTURE_INTERFACES_MAX = UINT16_MAX, CAPTURE_NAME = 16 };

struct record {
	int64_t time_ns;
	const uint8_t *data; /* `captured` bytes, valid until the next capture_next() of the same file */
	uint64_t place;	     /* offset of its bytes in sorted.bytes; only sorted.c uses it */
	uint32_t captured;
	uint32_t length;    /* bytes on the wire; at least `captured` */
	uint32_t interface; /* index into capture_file.interfaces */
	uint16_t link_type;
	bool at_limit;	 /* captured == length == the snaplen or capture_file.limit: the packet may have been
			    longer */
	bool big_endian; /* byte order of the capturing machine */
	bool untimed; /* the record has no time (pcapng simple packet block): .time_ns is that of the record
			 before */
};

/* An interface of the capture: a pcap file has one, a pcapng file one per interface description block. */
struct capture_interface {
	uint8_t name[CAPTURE_NAME]; /* cut to 16 bytes; all 0: the file has no name */
	uint64_t dropped;  /* packets the capturing program and its kernel dropped, as the file says */
	int64_t offset_s;  /* added to every time stamp (if_tsoffset) */
	uint64_t multiply; /* ns per tick of its time stamps; 0: .divide or a binary .resolution applies */
	uint64_t divide;   /* ticks per ns, a power of ten; 0 with a decimal resolution: every time is 0 ns */
	uint32_t snaplen;  /* 0: no limit */
	uint16_t link_type;
	uint8_t resolution; /* as in if_tsresol: 10^-n s, or with the highest bit set 2^-n s */
	bool dropped_known;
	bool malformed; /* the length of an option is impossible: options before it are used */
};

struct capture_file {
	struct stream stream;
	struct capture_interface *interfaces; /* of all sections */
	uint32_t interface_count, interface_capacity;
	uint32_t section;     /* pcapng: index of the first interface of the current section */
	int64_t last_ns;      /* pcapng: time of the record before */
	uint32_t snaplen;     /* of the first interface */
	uint16_t link_type;   /* of the first interface */
	bool blocks;	      /* pcapng */
	bool nanosecond;      /* its time stamps are finer than microseconds */
	bool swapped;	      /* byte order differs from this machine's; of the first section */
	bool section_swapped; /* the same, of the current section; pcap: of the file */
	uint32_t limit; /* pcap whose records never show a longer length on the wire: the longest of the first
			   records; else 0 */
	bool lengths_swapped;	    /* pcap before 2.3: a record's two lengths are in the opposite order */
	bool lengths_maybe_swapped; /* pcap 2.3: some programs write them in the opposite order */
	bool cut_off;		    /* the file does not end cleanly; see .trouble */
	char trouble[200];	    /* why it cannot be read, or not to its end; "": no trouble */
};

/* Numbers in the byte order of the file, or of its current section. */
static inline uint16_t file_get16(const struct capture_file *p, const uint8_t *at)
{
	uint16_t v;

	memcpy(&v, at, sizeof(v));
	return p->section_swapped ? __builtin_bswap16(v) : v;
}

static inline uint32_t file_get32(const struct capture_file *p, const uint8_t *at)
{
	uint32_t v;

	memcpy(&v, at, sizeof(v));
	return p->section_swapped ? __builtin_bswap32(v) : v;
}

static inline uint64_t file_get64(const struct capture_file *p, const uint8_t *at)
{
	uint64_t v;

	memcpy(&v, at, sizeof(v));
	return p->section_swapped ? __builtin_bswap64(v) : v;
}

void capture_file_close(struct capture_file *p);
/* Append an interface with the default values. NULL: no memory, or more than CAPTURE_INTERFACES_MAX. */
struct capture_interface *capture_file_interface_new(struct capture_file *p);
/* Stop reading because of an error in the file: sets .cut_off and .trouble. Always returns false. */
bool capture_file_stop(struct capture_file *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
/*
 * The stream has ended. With bytes left of an incomplete `inside` ("record"), or when unpacking failed, as
 * capture_file_stop(). Always returns false.
 */
bool capture_file_end(struct capture_file *p, const char *inside);

#endif
