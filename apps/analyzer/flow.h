/* The reader, its flows (TCP connections, SCTP associations) and the paths they use. */
#ifndef ANALYZER_FLOW_H
#define ANALYZER_FLOW_H

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
	bool based;
	bool base_known;
	bool tag_known;
	bool numbered; /* TCP: SYN seen; SCTP: INIT or INIT-ACK seen */
	bool ended;
	uint8_t window_shift; /* TCP: as offered in SYN, 255 = not offered */
	bool mapped;	      /* MPTCP: the last mapping is there */
	uint64_t map_dsn;
	int64_t map_seq;
	uint32_t map_bytes;
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

struct file {
	struct pcap pcap;
	struct record record;
	bool there;	      /* record holds the next packet */
	int64_t before_ns;    /* the record before it */
	uint32_t *interfaces; /* rows in interfaces */
	uint32_t interface_count;
};

struct nwa {
	struct table tables[nwa_tables];
	struct file *files;
	uint32_t file_count;
	uint32_t options;
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

/* What went wrong, unless something did before. Always -1. */
int reader_fail(struct nwa *a, const char *file, const char *why);

static inline struct nwa_source *source_row(const struct nwa *a, uint32_t source)
{
	return table_row(&a->tables[nwa_table_sources], source);
}

/* Opens a file (or `memory`) as the next source. -1: see the reader's error. */
int source_open(struct nwa *a, uint32_t source, const char *name, const uint8_t *memory, size_t bytes);
/* The file's next record becomes its head. */
void source_advance(struct nwa *a, uint32_t source);
void source_close(struct file *file);

/* The packet's path (row number) and its direction on it. */
uint32_t path_of(struct nwa *a, const struct packet *p, uint8_t *direction);
/* Ports in the order of the path's two ends: the key of a flow on that path. */
static inline uint64_t flow_key(uint32_t path, uint8_t direction, uint16_t from, uint16_t to)
{
	uint16_t at_a = direction ? to : from, at_b = direction ? from : to;

	return (uint64_t)path << 32 | (uint64_t)at_a << 16 | at_b;
}
/* Where a packet goes: its path, its direction on it, its ports. */
struct heading {
	uint32_t path;
	uint8_t path_direction;
	uint16_t from, to;
};
/* A new flow; this packet is of its direction `direction`. NULL: no memory. */
struct flow *flow_new(struct nwa *a, const struct packet *p, const struct heading *to, uint8_t direction);
/* Flow by id. */
static inline struct flow *flow_at(const struct nwa *a, uint32_t id)
{
	return a->flows[id];
}
/* Adds one packet to the totals of (flow, path). */
void flow_count(struct nwa *a, const struct packet *p, uint32_t path, uint8_t path_direction,
		const struct findings *f);

/* Sets the base if there is none, or if the handshake tells it before anything was numbered from it. */
void half_base(struct half *h, uint32_t base, bool known);
/* The 64-bit number nearest to the highest one seen. */
static inline int64_t half_unwrap(struct half *h, uint32_t raw)
{
	int64_t value = h->highest + (int32_t)(raw - (h->base + (uint32_t)h->highest));

	if (value > h->highest)
		h->highest = value;
	return value;
}

static inline int64_t half_unwrap_ack(struct half *h, uint32_t raw)
{
	int64_t value = h->highest_ack + (int32_t)(raw - (h->base + (uint32_t)h->highest_ack));

	if (value > h->highest_ack)
		h->highest_ack = value;
	return value;
}

void tcp_packet(struct nwa *a, const struct packet *p, uint32_t path, uint8_t path_direction,
		struct findings *f);
void sctp_packet(struct nwa *a, const struct packet *p, uint32_t path, uint8_t path_direction,
		 struct findings *f);

/* Where MPTCP options were found. */
struct mptcp_place {
	uint32_t flow, path;
	uint8_t direction;
};
/* Whether an MPTCP option (of 3 bytes or more) is worth a row. */
bool mptcp_tells(const uint8_t *at, uint8_t length);
/* A row for each of a segment's options that is. */
void mptcp_options(struct nwa *a, const struct packet *p, const struct mptcp_place *place, const uint8_t *at,
		   uint32_t bytes);

/* As nwa_open, of captures in memory (which must outlive the handle): for fuzzing and tests. */
struct memory_file {
	const uint8_t *data;
	size_t bytes;
};
struct nwa *nwa_open_memory(const struct memory_file *files, uint32_t count, uint32_t wanted,
			    uint32_t options);

/* SCTP: the association a packet belongs to and its direction in it. NULL: no memory. */
struct association_hint {
	uint16_t from, to;
	uint32_t tag;	    /* of the common header */
	uint8_t first_type; /* of the first chunk */
	uint8_t first_flags;
	bool has_init_tag;
	uint32_t init_tag; /* INIT, INIT-ACK: the sender's own tag */
	uint32_t initial_tsn;
};
struct flow *association_of(struct nwa *a, const struct packet *p, uint32_t path, uint8_t path_direction,
			    const struct association_hint *hint, uint8_t *direction);

#endif
