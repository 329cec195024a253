/* Records of a capture file (libpcap's savefile format, both byte orders, micro- and nanoseconds). */
#ifndef ANALYZER_PCAP_H
#define ANALYZER_PCAP_H

#include "stream.h"

struct record {
	int64_t time_ns;
	const uint8_t *data; /* `captured` bytes, valid until the next pcap_next of the same file */
	uint32_t captured;
	uint32_t length; /* on the wire; never below captured */
};

struct pcap {
	struct stream stream;
	uint32_t snaplen;
	uint16_t link_type;
	bool nanosecond;
	bool swapped; /* against this machine */
	bool cut_off;
	char trouble[160];
};

/* Reads the file header. false: not a capture, see trouble. */
bool pcap_start(struct pcap *p);
/* The next whole record; false: the end (cut_off and trouble say what kind of end). */
bool pcap_next(struct pcap *p, struct record *r);

#endif
