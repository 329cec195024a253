/* A capture file, its interfaces and records, whatever its format. */
#ifndef ANALYZER_CAPTURE_FILE_H
#define ANALYZER_CAPTURE_FILE_H

#include "stream.h"

enum { CAPTURE_INTERFACES_MAX = UINT16_MAX, CAPTURE_NAME = 16 };

struct record {
	int64_t time_ns;
	const uint8_t *data; /* `captured` bytes, valid until the next capture_next() of the same file */
	uint64_t place;	     /* of its bytes, among those of records that are sorted */
	uint32_t captured;
	uint32_t length;    /* on the wire; never below captured */
	uint32_t interface; /* index into capture_file.interfaces */
	uint16_t link_type;
	bool at_limit; /* cut where this capture cuts every packet, and its length on the wire was not kept */
	bool big_endian; /* the capturing machine was */
	bool untimed;	 /* a pcapng simple packet block has no time: that of the record before stands in */
};

/* The interface of packets: a pcap file has one, a pcapng file one for each description block. */
struct capture_interface {
	uint8_t name[CAPTURE_NAME]; /* cut there, or all 0 */
	uint64_t dropped;	    /* by the capturing program and its kernel, by the file's own count */
	int64_t offset_s;
	uint64_t multiply; /* a tick in ns; 0: it is divided instead */
	uint64_t divide;   /* ticks in a ns, when a power of ten; 0: too many for any time but 0 */
	uint32_t snaplen;  /* 0: none */
	uint16_t link_type;
	uint8_t resolution; /* as if_tsresol: 10^-n s, or with the highest bit 2^-n s */
	bool dropped_known;
	bool malformed; /* its options contradict their lengths: used up to there */
};

struct capture_file {
	struct stream stream;
	struct capture_interface *interfaces; /* of all sections */
	uint32_t interface_count, interface_capacity;
	uint32_t section;   /* its first interface */
	int64_t last_ns;    /* pcapng: of the record before */
	uint32_t snaplen;   /* of the first interface */
	uint16_t link_type; /* of the first interface */
	bool blocks;	    /* pcapng */
	bool nanosecond;    /* finer than microseconds */
	bool swapped;	    /* against this machine; of the first section */
	bool section_swapped;
	uint32_t limit;	      /* pcap: as long as any record, where no length on the wire is kept; or 0 */
	bool lengths_swapped; /* pcap before 2.3: a record's two lengths are the other way round */
	bool lengths_maybe_swapped; /* pcap 2.3: some programs' still are */
	bool cut_off;
	char trouble[200];
};

void capture_file_close(struct capture_file *p);
/* A new interface, all 0 but what every one has; NULL: no memory, or too many. */
struct capture_interface *capture_file_interface_new(struct capture_file *p);
/* Ends the file before its end. Always false. */
bool capture_file_stop(struct capture_file *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The end of the stream, inside something or not. Always false. */
bool capture_file_end(struct capture_file *p, const char *inside);

#endif
