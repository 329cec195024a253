/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pcap_writer: writes a nanosecond pcap file (magic 0xa1b23c4d, host byte order) in large pieces, in time
 * order.
 *
 * On a machine with several CPUs, packets of the two directions of an interface can enter the ring in
 * another order than their time stamps. So the last PCAP_WINDOW records stay in memory and a late one is
 * inserted where its time stamp belongs. A record older than all of them fails with EILSEQ. After a failed
 * write the file ends behind the last piece (of whole records) that was written.
 */
#ifndef NETWARP_PCAP_WRITER_H
#define NETWARP_PCAP_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PCAP_SNAPLEN	  262144 /* libpcap's MAXIMUM_SNAPLEN; docs/formats.md names it */
#define PCAP_WINDOW	  64
#define PCAP_HEADER_BYTES 24
#define PCAP_RECORD_BYTES 16
#define PCAP_WRITE_BYTES  (256 * 1024)	/* written once so many bytes are older than the window */
#define PCAP_BUFFER_BYTES (1024 * 1024) /* holds PCAP_WRITE_BYTES and some of the longest packets */

struct pcap_writer {
	int fd;		 /* owned: pcap_writer_close() closes it */
	int error;	 /* errno of the first failure; no record is added after it. 0: none */
	bool drop_pages; /* set by the caller after pcap_writer_open(), in a guest: drop written pages
			    (files_drop_pages()), and do not fsync */
	bool broken;	 /* .error came from write(2): pcap_writer_close() writes no more */
	int fsync_error;
	uint64_t packets; /* in the file, once closed */
	uint64_t bytes;	  /* of the file */
	int64_t first_ns; /* time stamps of the earliest and the latest packet; 0 without packets */
	int64_t last_ns;
	char *buf;
	size_t len;
	uint64_t held; /* records in buf */
	/* the last records in buf, oldest first */
	struct {
		size_t offset;
		int64_t t_ns;
	} recent[PCAP_WINDOW];
	size_t recent_count;
	int64_t floor_ns; /* time of the latest record that has left .recent: nothing older can be added */
};

/* Takes over `fd`, an empty file. Returns 0, or -1 with errno (then fd is closed). */
int pcap_writer_open(struct pcap_writer *pcap, int fd);
/*
 * Add a packet of `length` bytes of which `captured` (at most PCAP_SNAPLEN) are in `data`. Returns 0, or -1
 * with .error set.
 */
int pcap_writer_add(struct pcap_writer *pcap, int64_t t_ns, const void *data, uint32_t captured,
		    uint32_t length);
/*
 * Write the records still in memory, fsync (see drop_pages), close. Afterwards .packets, .bytes, .error and
 * .fsync_error are final.
 */
void pcap_writer_close(struct pcap_writer *pcap);

#endif
