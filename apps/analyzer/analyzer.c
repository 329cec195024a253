// SPDX-License-Identifier: Apache-2.0
/* The reader: files merged by time, packets handed to their transport, rows and totals; and the C interface.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "datagrams.h"
#include "decode.h"
#include "checksum.h"
#include "analyzer.h"
#include "association.h"
#include "copies.h"
#include "filter.h"
#include "flow.h"
#include "icmp.h"
#include "identity.h"
#include "mappings.h"
#include "quic.h"
#include "sctp.h"
#include "source.h"
#include "tcp.h"

enum { ALWAYS_KEPT = nwa_table_packets, FILES_MAX = UINT16_MAX };

#define FIELD_F(type_, name_) {#name_, #type_, (uint32_t)offsetof(current, name_), 1},
#define FIELD_P(type_, name_) {#name_, #type_, (uint32_t)offsetof(current, name_), 2},
#define FIELD_B(name_)	      {#name_, "S16", (uint32_t)offsetof(current, name_), 1},
#define DESCRIBE(table_, row_, FIELDS)                                                                       \
	case nwa_table_##table_: {                                                                           \
		typedef struct nwa_##row_ current;                                                           \
		static const struct nwa_field list[] = {FIELDS(FIELD_F, FIELD_P, FIELD_B)};                  \
		_Static_assert(sizeof(current) <= sizeof(((struct table *)0)->scratch), #row_);              \
		*row_bytes = sizeof(current);                                                                \
		*count = sizeof(list) / sizeof(list[0]);                                                     \
		*fields = list;                                                                              \
		return #table_;                                                                              \
	}

const char *nwa_describe(uint32_t table, uint32_t *row_bytes, uint32_t *count,
			 const struct nwa_field **fields)
{
	switch (table) {
		NWA_TABLES(DESCRIBE)
	default:
		return NULL;
	}
}

uint32_t nwa_abi(void)
{
	return NWA_ABI;
}

static struct nwa *make(uint32_t count, uint32_t wanted, uint32_t options)
{
	struct nwa *a = calloc(1, sizeof(*a));
	struct map *maps[] = {&a->paths,      &a->tcp,	   &a->sctp,	      &a->tags,
			      &a->flow_paths, &a->tunnels, &a->conversations, &a->peers};
	uint64_t salt = 0;

	if (!a)
		return NULL;
	a->files = calloc(count ? count : 1, sizeof(*a->files));
	a->recent = calloc(RECENT_PACKETS, sizeof(*a->recent));
	if (!a->files || !a->recent)
		goto none;
	for (uint32_t i = 0; i < count; i++)
		a->files[i].capture.stream.fd = -1;
	a->file_count = count;
	a->options = options;
	a->stop_fd = -1;
	a->last_path = NWA_NONE;
	for (uint32_t t = 0; t < nwa_tables; t++) {
		const struct nwa_field *fields;
		uint32_t n;

		(void)nwa_describe(t, &a->tables[t].row_bytes, &n, &fields);
		a->tables[t].wanted = t < ALWAYS_KEPT || wanted >> t & 1;
	}
	(void)!getrandom(&salt, sizeof(salt),
			 GRND_NONBLOCK); /* without it collisions cost time, never results */
	for (uint32_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++)
		if (!map_init(maps[i], salt))
			goto none;
	return a;
none:
	nwa_close(a);
	return NULL;
}

struct nwa *nwa_open(const char *const *files, uint32_t count, uint32_t wanted, uint32_t options,
		     const char *filter, int32_t stop_fd)
{
	struct nwa *a = make(count, wanted, options);

	if (!a)
		return NULL;
	a->stop_fd = stop_fd;
	if (filter)
		(void)filter_start(a, filter);
	if (!count)
		(void)reader_fail(a, "", "no capture given");
	if (count > FILES_MAX)
		(void)reader_fail(a, "", "more than 65535 captures at once");
	for (uint32_t i = 0; i < count && !a->error[0]; i++)
		(void)source_open(a, i, files[i], NULL);
	return a;
}

struct nwa *nwa_open_memory(const struct memory_file *files, uint32_t count, uint32_t wanted,
			    uint32_t options)
{
	struct nwa *a = make(count, wanted, options);

	for (uint32_t i = 0; a && i < count && !a->error[0]; i++)
		(void)source_open(a, i, "memory", &files[i]);
	return a;
}

bool nwa_join(struct nwa *a, uint16_t port, uint32_t tag, uint16_t other_port, uint32_t other_tag)
{
	return association_join(a, &(struct tag_pair){{port, other_port}, {tag, other_tag}});
}

/* The file with the earliest next record; at equal times the first file. NWA_NONE: all are at their end. */
static uint32_t earliest(const struct nwa *a)
{
	uint32_t best = NWA_NONE;

	for (uint32_t i = 0; i < a->file_count; i++)
		if (a->files[i].there &&
		    (best == NWA_NONE || a->files[i].record.time_ns < a->files[best].record.time_ns))
			best = i;
	return best;
}

/* RFC 2710, RFC 3810: 130 to 132 and 143; RFC 4861: 133 to 137. They come whole (RFC 6980): a later fragment
 * of another message has no type. */
static bool is_discovery(const struct packet *p)
{
	return p->kind == PACKET_IPV6 && p->protocol == PROTOCOL_ICMPV6 && p->captured > 0 &&
	       !(p->marks & NWA_MARK_FRAGMENT) &&
	       ((p->data[0] >= 130 && p->data[0] <= 137) || p->data[0] == 143);
}

static void count_kind(struct nwa_source *row, const struct packet *p)
{
	row->arp += p->kind == PACKET_ARP;
	row->ipv4 += p->kind == PACKET_IPV4;
	row->ipv6 += p->kind == PACKET_IPV6;
	row->other += p->kind == PACKET_OTHER;
	row->discovery += is_discovery(p);
	if (!p->marks)
		return;
	row->tunnelled += !!p->tunnel;
	row->copies += !!(p->marks & NWA_MARK_COPY);
	row->truncated += p->length_lost;
	row->fragments += !!(p->marks & NWA_MARK_FRAGMENT);
	row->malformed += !!(p->marks & NWA_MARK_MALFORMED);
	row->bad_checksum += !!(p->marks & NWA_MARK_BAD_CHECKSUM);
}

/* Puts a fragment to its datagram. Returns whether that is whole now and can be looked into. */
static bool take_fragment(struct nwa *a, struct packet *p, struct findings *f,
			  const struct datagram **datagram)
{
	struct nwa_source *row = source_row(a, p->source);
	const struct datagram *d;

	if (!p->length) /* not even its header was captured */
		return false;
	d = fragments_add(&a->fragments, p, &a->out_of_memory);
	if (!d)
		return false;
	*datagram = d;
	row->joined += d->count;
	row->reassembled++;
	p->marks |= NWA_MARK_REASSEMBLED;
	f->more_packets = d->count - 1;
	f->more_ip_bytes = d->ip_bytes - p->ip_bytes;
	f->more_frame_bytes = d->frame_bytes - p->frame_bytes;
	return packet_decode_datagram(p);
}

/* The path of the packet that carries a tunnel's. */
static __attribute__((noinline)) void take_tunnel(struct nwa *a, const struct packet *p)
{
	struct packet outer = *p;
	uint8_t direction;
	uint32_t path;

	outer.from = p->outer.from;
	outer.to = p->outer.to;
	outer.ip_bytes = p->outer.ip_bytes;
	outer.kind = p->outer.kind;
	outer.protocol = 0; /* `data` is not its */
	path = path_find_or_add(a, &outer, &direction);
	tunnel_count(a, p, path, direction);
}

/* A datagram that became whole carries a tunnel's packet. Its earlier fragments are the carrier's alone. */
static __attribute__((noinline)) void enter_reassembled(struct nwa *a, const struct packet *p,
							struct findings *f, uint32_t *path,
							uint8_t *path_direction)
{
	tunnel_count(a, p, *path, *path_direction);
	*path = path_find_or_add(a, p, path_direction);
	f->more_packets = f->more_ip_bytes = f->more_frame_bytes = 0;
}

/* Sets the flow in the rows of a datagram's earlier fragments, now that it is known. */
static void claim_fragments(struct nwa *a, const struct datagram *d, const struct findings *f)
{
	struct table *t = &a->tables[nwa_table_packets];

	for (uint32_t i = 0; i < d->count; i++) {
		struct nwa_packet *row;

		if (d->pieces[i].number < a->first_number ||
		    d->pieces[i].number - a->first_number >= t->count)
			continue;
		row = table_row(t, d->pieces[i].number - a->first_number);
		row->flow = f->flow;
		row->direction = f->direction;
	}
}

/* A packet of no flow. */
static __attribute__((noinline)) void take_other(struct nwa *a, const struct packet *p, uint32_t path,
						 uint8_t path_direction, bool whole, const struct findings *f)
{
	conversation_count(a, p, path, path_direction, whole, f);
	if (whole) {
		icmp_take(a, p);
		datagram_take(a, p, path, path_direction);
		quic_take(a, p, path, path_direction);
	}
}

static void take_packet(struct nwa *a, uint32_t source)
{
	const struct file *file = &a->files[source];
	struct packet p; /* packet_decode fills it, but for: */
	struct findings f = {.flow = NWA_NONE};
	const struct datagram *datagram = NULL;
	uint32_t interface_at = file->interfaces[file->record.interface];
	struct nwa_interface *interface = table_row(&a->tables[nwa_table_interfaces], interface_at);
	uint32_t path = NWA_NONE;
	uint8_t path_direction = 0;
	struct nwa_packet *row;
	bool whole, in_tunnel;

	p.number = (uint32_t)a->number++;
	p.source = (uint16_t)source;
	whole = packet_decode(&p, &file->record);
	in_tunnel = p.tunnel;
	interface->packets++;
	interface->frame_bytes += p.frame_bytes;
	if (in_tunnel)
		take_tunnel(a, &p);
	if (p.ip_bytes)
		path = path_find_or_add(a, &p, &path_direction);
	if (p.marks & NWA_MARK_FRAGMENT)
		whole = take_fragment(a, &p, &f, &datagram);
	if (p.tunnel && !in_tunnel) {
		enter_reassembled(a, &p, &f, &path, &path_direction);
		datagram = NULL;
	} else if (whole && p.marks & NWA_MARK_REASSEMBLED) {
		path_direction = path_direction_of(&p, path_direction);
	}
	if (whole && a->options & NWA_CHECKSUMS && !packet_checksum_right(&p, a->options & NWA_UNFINISHED)) {
		p.marks |= NWA_MARK_BAD_CHECKSUM;
		whole = false;
	}
	if (whole && (p.protocol == PROTOCOL_TCP || p.protocol == PROTOCOL_SCTP) &&
	    !(p.marks & NWA_MARK_REASSEMBLED) && is_copy(a, &p)) {
		p.marks |= NWA_MARK_COPY;
		whole = !(a->options & NWA_LEAVE_COPIES);
	}
	if (whole && p.protocol == PROTOCOL_TCP)
		tcp_packet(a, &p, path, path_direction, &f);
	else if (whole && p.protocol == PROTOCOL_SCTP)
		sctp_packet(a, &p, path, path_direction, &f);
	if (f.malformed)
		p.marks |= NWA_MARK_MALFORMED;
	if (f.flow != NWA_NONE)
		flow_count(a, &p, path, path_direction, &f);
	else if (path != NWA_NONE && !(p.marks & NWA_MARK_COPY) &&
		 (!(p.marks & NWA_MARK_FRAGMENT) || p.marks & NWA_MARK_REASSEMBLED))
		take_other(a, &p, path, path_direction, whole, &f);
	if (datagram && f.flow != NWA_NONE)
		claim_fragments(a, datagram, &f);
	count_kind(source_row(a, source), &p);
	source_row(a, source)->unseen_bytes += f.unseen_bytes;
	identity_take(a, &p, f.flow, path, path_direction);
	row = table_push(&a->tables[nwa_table_packets]);
	*row = (struct nwa_packet){.time_ns = p.time_ns,
				   .flow = f.flow,
				   .path = path,
				   .ip_bytes = p.ip_bytes,
				   .frame_bytes = p.frame_bytes,
				   .payload_bytes = f.payload_bytes,
				   .new_bytes = f.new_bytes,
				   .source = p.source,
				   .interface = (uint16_t)interface_at,
				   .chunks = (uint16_t)f.chunks,
				   .marks = p.marks,
				   .protocol = p.protocol,
				   .direction = f.direction,
				   .path_direction = path_direction,
				   .is_retransmission = f.is_retransmission,
				   .on_other_path = f.on_other_path,
				   .acks = f.acks,
				   .tos = p.tos};
}

/* Of the rows that nwa_clear forgets. */
static uint64_t bytes_of_rows(const struct nwa *a)
{
	uint64_t bytes = 0;

	for (uint32_t t = ALWAYS_KEPT; t < nwa_tables; t++)
		bytes += a->tables[t].count * a->tables[t].row_bytes;
	return bytes;
}

int nwa_read(struct nwa *a, uint64_t packets)
{
	uint64_t before = bytes_of_rows(a);

	for (uint64_t n = 0; !packets || n < packets; n++) {
		uint32_t source;

		if (packets && (bytes_of_rows(a) - before) / NWA_ROW_BYTES >= packets)
			break;
		if (a->error[0])
			return -1;
		source = earliest(a);
		if (source == NWA_NONE)
			break;
		take_packet(a, source);
		source_advance(a, source);
		if (a->out_of_memory)
			return reader_fail(a, "", "out of memory");
		if (a->number >= NWA_NONE)
			return reader_fail(a, "", "more than 4294967294 packets: read the captures in parts");
	}
	for (uint32_t t = 0; t < nwa_tables; t++)
		if (a->tables[t].full)
			return reader_fail(
			    a, "", "a table is full, or there is no memory for it: ask for fewer tables");
	return a->error[0] ? -1 : earliest(a) != NWA_NONE;
}

const void *nwa_rows(const struct nwa *a, uint32_t table, uint64_t *rows)
{
	*rows = table < nwa_tables ? a->tables[table].count : 0;
	return table < nwa_tables ? a->tables[table].rows : NULL;
}

void nwa_clear(struct nwa *a)
{
	a->first_segment += a->tables[nwa_table_segments].count;
	for (uint32_t t = ALWAYS_KEPT; t < nwa_tables; t++)
		a->tables[t].count = 0;
	a->first_number = a->number;
}

const char *nwa_error(const struct nwa *a)
{
	return a->error;
}

const char *nwa_trouble(const struct nwa *a, uint32_t source)
{
	return source < a->file_count ? a->files[source].capture.trouble : "";
}

void nwa_close(struct nwa *a)
{
	if (!a)
		return;
	for (uint64_t i = 0; i < a->tables[nwa_table_flows].count; i++) {
		ranges_free(&a->flows[i]->half[0].seen);
		ranges_free(&a->flows[i]->half[1].seen);
		mappings_free(a->flows[i]->half[0].mappings);
		mappings_free(a->flows[i]->half[1].mappings);
		free(a->flows[i]->offers);
		free(a->flows[i]->opening);
		free(a->flows[i]);
	}
	free(a->flows);
	for (uint32_t i = 0; a->files && i < a->file_count; i++) {
		source_close(&a->files[i]);
	}
	free(a->files);
	free(a->recent);
	fragments_free(&a->fragments);
	filter_free(a->filter);
	for (uint32_t t = 0; t < nwa_tables; t++)
		table_free(&a->tables[t]);
	map_free(&a->paths);
	map_free(&a->tcp);
	map_free(&a->sctp);
	map_free(&a->tags);
	map_free(&a->flow_paths);
	map_free(&a->tunnels);
	map_free(&a->conversations);
	map_free(&a->peers);
	free(a->pairs);
	free(a);
}
