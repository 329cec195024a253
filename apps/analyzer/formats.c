// SPDX-License-Identifier: Apache-2.0
/* Documented in formats.h. */
#include <stdio.h>

#include "formats.h"
#include "pcap.h"
#include "pcapng.h"

enum { HEADER = 24 }; /* a pcap file has one; a pcapng file's first block is longer */

bool capture_start(struct capture_file *p)
{
	const uint8_t *header = stream_peek(&p->stream, HEADER);

	if (!header) {
		snprintf(p->trouble, sizeof(p->trouble), "too short for a capture (%zu bytes)%s%s",
			 stream_left(&p->stream), p->stream.trouble ? ": " : "",
			 p->stream.trouble ? p->stream.trouble : "");
		return false;
	}
	if (pcapng_recognised(header))
		return pcapng_start(p);
	if (pcap_recognised(header))
		return pcap_start(p);
	snprintf(p->trouble, sizeof(p->trouble),
		 "not a pcap or pcapng file (it begins with %02x %02x %02x %02x)", header[0], header[1],
		 header[2], header[3]);
	return false;
}

bool capture_next(struct capture_file *p, struct record *r)
{
	if (p->cut_off)
		return false;
	return p->blocks ? pcapng_next(p, r) : pcap_next(p, r);
}
