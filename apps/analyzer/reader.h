/* The reader: its files, tables and flows (TCP connections, SCTP associations). */
#ifndef ANALYZER_READER_H
#define ANALYZER_READER_H

#include "capture_file.h"
#include "fragment.h"
#include "map.h"
#include "netwarp_analyzer.h"
#include "packet.h"
#include "ranges.h"
#include "table.h"

/* One direction of a flow: what its sender numbered. */
struct half {
	struct ranges seen;
	int64_t highest;     /* number seen from this sender, unwrapped */
	int64_t highest_ack; /* of this sender's numbers, unwrapped */
	uint32_t base;
	uint32_t tag; /* SCTP: this endpoint's own */
	bool has_base;
	bool base_known;
	bool tag_known;
	bool numbered; /* TCP: SYN seen; SCTP: INIT or INIT-ACK seen */
	bool ended;
	uint8_t window_shift;	   /* TCP: as offered in SYN, 255 = not offered */
	struct mappings *mappings; /* MPTCP: what its data were called at the data level, or NULL */
};

struct flow {
	struct half half[2];
	uint32_t id;
	uint32_t last_path; /* the path of its last packet, and the row of (flow, path) */
	uint32_t last_flow_path;
	uint16_t port[2];
	bool initiator_known;
	bool talked; /* SCTP: anything but INITs was seen */
};

/* A packet of late: one that is equal is the same, captured again. */
struct recent {
	uint64_t hash;
	int64_t time_ns;
};
enum { RECENT_PACKETS = 1024 }; /* 2^10: an index is a hash's upper 10 bits */

struct sorted;

struct file {
	struct capture_file capture;
	struct record record;
	bool there;	      /* record holds the next packet */
	int64_t before_ns;    /* the record before it */
	uint32_t *interfaces; /* rows in interfaces */
	uint32_t interface_count;
	struct sorted *sorted; /* NWA_SORT: every record */
};

struct nwa {
	struct table tables[nwa_tables];
	struct file *files;
	uint32_t file_count;
	uint32_t options;
	int stop_fd;	       /* see nwa_open; -1: none */
	struct filter *filter; /* filter.h; NULL: every packet is kept */
	uint64_t number;       /* of the next record */
	uint64_t first_number; /* of the first row of packets: what was before is forgotten */
	struct fragments fragments;
	struct flow **flows;
	uint64_t flow_capacity;
	struct map paths;	       /* hash of an address pair -> path */
	struct map tcp;		       /* path, ports -> flow and orientation */
	struct map sctp;	       /* path, ports -> flow and orientation */
	struct map tags;	       /* ports and verification tag of a packet -> flow and direction */
	struct map flow_paths;	       /* flow, path -> row */
	struct address last_a, last_b; /* the path looked up last */
	uint32_t last_path;
	struct map tunnels;    /* path, kind -> row */
	uint16_t last_number;  /* IPv4 identification of the packet before */
	struct recent *recent; /* RECENT_PACKETS, by hash */
	bool out_of_memory;
	char error[256];
};

/* What the transport found in one packet: goes into the packet's row and the totals. */
struct findings {
	uint32_t flow;
	uint32_t payload_bytes;
	uint32_t new_bytes;
	uint32_t data_chunks;
	uint32_t retransmitted_chunks;
	uint32_t sacks;
	uint32_t heartbeats;
	uint32_t heartbeat_acks;
	uint32_t chunks;
	uint32_t unseen_bytes;
	uint32_t more_packets, more_ip_bytes, more_frame_bytes; /* fragments before this one */
	uint8_t direction;
	bool is_retransmission;
	bool on_other_path;
	bool acks;
	bool malformed;
};

/* Keeps the first failure as the reader's error. Always -1. */
int reader_fail(struct nwa *a, const char *file, const char *why);

static inline struct nwa_source *source_row(const struct nwa *a, uint32_t source)
{
	return table_row(&a->tables[nwa_table_sources], source);
}

#endif
