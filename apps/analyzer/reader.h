/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a reader (struct nwa, one per nwa_open()): its files, tables and flows. */
#ifndef ANALYZER_READER_H
#define ANALYZER_READER_H

#include "capture_file.h"
#include "fragment.h"
#include "map.h"
#include "netwarp_analyzer.h"
#include "packet.h"
#include "ranges.h"
#include "table.h"

enum { OFFERS = 16 };
/* TCP: a SYN, with or without ACK, and what it offers. */
struct offer {
	uint64_t segment; /* its row in the table of segments, counted from the begin of the capture */
	uint32_t seq, ts_val, ts_ecr;
	uint16_t mss, present;
	uint8_t shift, direction;
};

/* TCP: a byte sent to probe a window of 0 (RFC 9293 3.8.6.1): data only once it is acknowledged. */
struct probe {
	int64_t seq;
	uint64_t segment; /* as in struct offer */
	uint32_t packet, path;
	bool there;
};

/* One direction of a flow: the numbers that its sender has used. */
struct half {
	struct ranges seen;
	int64_t highest;     /* highest number seen from this sender, in 64 bits */
	int64_t highest_ack; /* highest acknowledgement of this sender's numbers, in 64 bits */
	uint32_t base;	     /* the raw number that counts as 0 */
	uint32_t tag;	     /* SCTP: the verification tag this endpoint has chosen */
	bool has_base;
	bool base_known; /* from the handshake */
	bool tag_known;
	bool numbered; /* TCP: SYN seen; SCTP: INIT or INIT-ACK seen */
	bool ended;
	int64_t next;		   /* TCP: the number after the last one sent (SND.NXT) */
	struct probe probe;	   /* TCP: of a closed window, with a byte that may have been taken */
	bool acknowledged;	   /* TCP: any of its numbers */
	bool window_shut;	   /* TCP: it announced a window of 0 last */
	bool asked;		   /* TCP: it sent a SYN without ACK */
	bool answered;		   /* TCP: it sent a SYN with ACK */
	struct offer syn;	   /* TCP: its first SYN */
	struct mappings *mappings; /* MPTCP: its data sequence numbers; NULL: none seen */
};

/* TCP: the SYNs of a connection of which an end sent more than one, until one is acknowledged. */
struct opening {
	uint32_t count;
	struct offer list[OFFERS];
};

/* SCTP: the numbers of several INIT-ACKs: each INIT, also a repeated one, is answered by another one. */
struct offers {
	uint32_t count; /* of all; the latest OFFERS are kept */
	struct {
		uint32_t tag, tsn;
	} list[OFFERS];
};

struct flow {
	struct half half[2];
	struct offers *offers;	 /* NULL: at most one INIT-ACK was seen */
	struct opening *opening; /* NULL: no end sent more than one SYN, or one of them was acknowledged */
	struct flow *before;	 /* TCP: the connection of the same ports before it; NULL: none */
	uint32_t id;
	uint32_t last_path;	 /* the path of its last packet */
	uint32_t last_flow_path; /* the row of flow_paths for that path */
	uint16_t port[2];
	bool initiator_known;
	uint8_t strays;	  /* TCP: segments of an opening that fit none of its SYNs */
	bool talked;	  /* SCTP: a packet other than INIT was seen */
	bool established; /* TCP: a SYN of each end was acknowledged, or the capture began later */
};

/* SCTP: the tags of the two ends of an association, by end; see nwa_join(). */
struct tag_pair {
	uint16_t port[2];
	uint32_t tag[2];
};

/* A recent packet: an equal one is the same packet captured again (copies.h). */
struct recent {
	uint64_t hash;
	int64_t time_ns;
	uint8_t hop_limit;
	uint8_t times; /* captured so far */
};
/* How often packets from one address to another were captured. */
struct times_captured {
	bool packets;	 /* any that a host cannot have sent twice so soon */
	uint8_t most;	 /* of those */
	uint8_t several; /* of those, came more than once */
};
enum { RECENT_BITS = 12, RECENT_PACKETS = 1 << RECENT_BITS };

struct sorted;

struct file {
	struct capture_file capture;
	struct record record;
	bool there;	      /* .record holds the next packet; false: the file is at its end */
	int64_t before_ns;    /* time of the record before it */
	int64_t ahead_ns;     /* NWA_GO_ON: what is added to the times of its records */
	uint32_t *interfaces; /* rows of its interfaces in the table `interfaces` */
	uint32_t interface_count;
	struct sorted *sorted; /* NWA_SORT: all records of the file; else NULL */
};

struct nwa {
	struct table tables[nwa_tables];
	struct file *files;
	uint32_t file_count;
	uint32_t options;
	int stop_fd;		/* of nwa_open(); -1: none */
	struct filter *filter;	/* filter.h; NULL: every packet is kept */
	uint64_t number;	/* of the next record */
	uint64_t first_number;	/* number of the record in the first row of packets; nwa_clear() forgets those
				   before */
	uint64_t first_segment; /* likewise of the first row of segments */
	struct fragments fragments;
	struct flow **flows;
	uint64_t flow_capacity;
	struct map paths;	       /* hash of an address pair -> path */
	struct map tcp;		       /* path, ports -> flow and orientation */
	struct map sctp;	       /* path, ports -> flow and orientation */
	struct map tags;	       /* ports and verification tag of a packet -> flow and direction */
	struct map flow_paths;	       /* flow, path -> row */
	struct address last_a, last_b; /* address pair of last_path, looked up first */
	uint32_t last_path;
	struct map peers; /* ports and verification tag of a packet -> index in pairs, and its end */
	struct tag_pair *pairs;
	uint32_t pair_count;
	struct map tunnels;			   /* path, kind -> row */
	struct map conversations;		   /* path, ports or protocol -> row */
	uint16_t last_number;			   /* IPv4 identification of the packet before */
	struct recent *recent;			   /* RECENT_PACKETS, by hash */
	struct times_captured times_captured[256]; /* by a hash of the addresses */
	struct times_captured any_way;		   /* of all together */
	bool out_of_memory;
	char error[256];
};

/* The report of the transport's decoder on one packet, for the packet's row and the totals. */
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
	uint32_t more_packets, more_ip_bytes, more_frame_bytes; /* earlier fragments */
	uint8_t direction;
	bool is_retransmission;
	bool on_other_path;
	bool acks;
	bool malformed;
};

/* Keep the first failure as the reader's error (nwa_error()). Always returns -1. */
int reader_fail(struct nwa *a, const char *file, const char *why);

static inline struct nwa_source *source_row(const struct nwa *a, uint32_t source)
{
	return table_row(&a->tables[nwa_table_sources], source);
}

#endif
