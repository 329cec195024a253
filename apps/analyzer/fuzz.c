// SPDX-License-Identifier: Apache-2.0
/*
 * libFuzzer's entry: any bytes as captures. Besides what the sanitisers see, what must hold of every result
 * is checked here, so that a wrong number aborts like a wrong access. replay.c gives it files (no clang
 * needed), tests/fuzz/seeds.py makes seeds.
 */
#include <stdlib.h>
#include <string.h>

#include "analyzer.h"
#include "mappings.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition)                                                                                      \
	do {                                                                                                 \
		if (!(condition))                                                                            \
			abort();                                                                             \
	} while (0)

/* The first byte of an input. */
enum {
	CHECKSUMS = 1,
	IN_PARTS = 2,
	TOTALS_ONLY = 4,
	TWO_FILES = 8,
	SORTED = 16,
	WITHOUT_COPIES = 32,
	IN_PIECES = 64
};

static const void *rows(const struct nwa *a, enum nwa_table table, uint64_t *count)
{
	return nwa_rows(a, table, count);
}

/* Sources, interfaces and packets agree on the same packets. */
static void check_sources(const struct nwa *a)
{
	uint64_t n, sources, interfaces, flows, paths, read = 0, in_files = 0, at_interfaces = 0;
	const struct nwa_source *source = rows(a, nwa_table_sources, &sources);
	const struct nwa_interface *interface = rows(a, nwa_table_interfaces, &interfaces);
	const struct nwa_packet *packet = rows(a, nwa_table_packets, &n);

	(void)rows(a, nwa_table_flows, &flows);
	(void)rows(a, nwa_table_paths, &paths);
	for (uint64_t i = 0; i < n; i++) {
		MUST(packet[i].flow == NWA_NONE || packet[i].flow < flows);
		MUST(packet[i].path == NWA_NONE || packet[i].path < paths);
		MUST(packet[i].new_bytes <= packet[i].payload_bytes);
		MUST(packet[i].direction < 2 && packet[i].path_direction < 2);
		MUST(packet[i].source < sources && packet[i].interface < interfaces);
		MUST(interface[packet[i].interface].source == packet[i].source);
	}
	for (uint64_t i = 0; i < sources; i++) {
		MUST(source[i].arp + source[i].ipv4 + source[i].ipv6 + source[i].other <= source[i].packets);
		MUST(source[i].joined <= source[i].fragments && source[i].reassembled <= source[i].joined);
		in_files += source[i].packets;
		read += source[i].arp + source[i].ipv4 + source[i].ipv6 + source[i].other;
	}
	for (uint64_t i = 0; i < interfaces; i++) {
		MUST(interface[i].source < sources);
		at_interfaces += interface[i].packets;
	}
	MUST(at_interfaces == n && read == n);
	MUST(nwa_error(a)[0] || in_files == n);
}

/* Totals of flows are the sums of their packets, fragments of whole datagrams among them. */
static void check_totals(const struct nwa *a)
{
	uint64_t n, count = 0, ip_bytes = 0, payload = 0, fresh = 0;
	const struct nwa_packet *packet = rows(a, nwa_table_packets, &n);
	const struct nwa_flow_path *total;

	for (uint64_t i = 0; i < n; i++) {
		if (packet[i].flow == NWA_NONE)
			continue;
		count += !(packet[i].marks & NWA_MARK_FRAGMENT) || packet[i].marks & NWA_MARK_REASSEMBLED;
		ip_bytes += packet[i].ip_bytes;
		payload += packet[i].payload_bytes;
		fresh += packet[i].new_bytes;
	}
	total = rows(a, nwa_table_flow_paths, &n);
	for (uint64_t i = 0; i < n; i++)
		for (int d = 0; d < 2; d++) {
			MUST(total[i].new_bytes[d] <= total[i].payload_bytes[d]);
			count -= total[i].packets[d];
			ip_bytes -= total[i].ip_bytes[d];
			payload -= total[i].payload_bytes[d];
			fresh -= total[i].new_bytes[d];
		}
	MUST(!count && !ip_bytes && !payload && !fresh);
}

static void check_rows(const struct nwa *a)
{
	uint64_t n, flows, paths, blocks, inits, chunks;
	const struct nwa_chunk *chunk;
	const struct nwa_cause *cause;
	const struct nwa_mptcp_option *option;
	const struct nwa_sack *sack;
	const struct nwa_segment *segment;
	const struct nwa_address *address;

	(void)rows(a, nwa_table_flows, &flows);
	(void)rows(a, nwa_table_paths, &paths);
	(void)rows(a, nwa_table_blocks, &blocks);
	(void)rows(a, nwa_table_inits, &inits);
	segment = rows(a, nwa_table_segments, &n);
	for (uint64_t i = 0; i < n; i++) {
		MUST(segment[i].flow < flows && segment[i].path < paths);
		MUST(segment[i].new_bytes <= segment[i].payload_bytes);
		MUST(!segment[i].sack_blocks ||
		     segment[i].first_block + (uint64_t)segment[i].sack_blocks <= blocks);
	}
	chunk = rows(a, nwa_table_chunks, &n);
	for (uint64_t i = 0; i < n; i++) {
		MUST(chunk[i].flow < flows && chunk[i].path < paths);
		MUST(chunk[i].length >= 4 && chunk[i].user_bytes <= chunk[i].length);
		MUST(!chunk[i].on_other_path || chunk[i].is_retransmission);
	}
	sack = rows(a, nwa_table_sacks, &n);
	for (uint64_t i = 0; i < n; i++)
		MUST(sack[i].first_block + (uint64_t)sack[i].gap_blocks + sack[i].duplicate_tsns <= blocks);
	address = rows(a, nwa_table_addresses, &n);
	for (uint64_t i = 0; i < n; i++)
		MUST(address[i].init < inits);
	(void)rows(a, nwa_table_chunks, &chunks);
	cause = rows(a, nwa_table_causes, &n);
	for (uint64_t i = 0; i < n; i++)
		MUST(cause[i].flow < flows && cause[i].chunk < chunks && cause[i].length >= 4);
	option = rows(a, nwa_table_mptcp_options, &n);
	for (uint64_t i = 0; i < n; i++)
		MUST(option[i].flow < flows && option[i].path < paths && option[i].length >= 3);
}

/* QUIC packets of a datagram follow each other in it, and do not leave it. */
static void check_quic(const struct nwa *a)
{
	uint64_t n, paths, packets;
	const struct nwa_quic *row = rows(a, nwa_table_quic, &n);
	const struct nwa_packet *packet = rows(a, nwa_table_packets, &packets);

	(void)rows(a, nwa_table_paths, &paths);
	for (uint64_t i = 0; i < n; i++) {
		MUST(row[i].path < paths && row[i].packet < packets && row[i].kind <= NWA_QUIC_SHORT);
		MUST(row[i].bytes);
		MUST(packet[row[i].packet].marks & NWA_MARK_REASSEMBLED ||
		     row[i].offset + row[i].bytes < packet[row[i].packet].ip_bytes);
		if (i && row[i].offset)
			MUST(row[i].packet == row[i - 1].packet &&
			     row[i].offset == row[i - 1].offset + row[i - 1].bytes);
	}
}

/* The ranges that a sender has sent are sorted and disjoint. */
static void check_ranges(const struct nwa *a)
{
	uint64_t flows;

	(void)rows(a, nwa_table_flows, &flows);
	for (uint64_t i = 0; i < flows; i++)
		for (int d = 0; d < 2; d++) {
			const struct ranges *s = &a->flows[i]->half[d].seen;
			int64_t last = INT64_MIN;

			for (uint32_t r = 0; r < s->count; r++) {
				MUST(s->runs[r].count);
				for (uint32_t k = 0; k < s->runs[r].count; k++) {
					const struct range *range = &s->runs[r].ranges[k];

					MUST(range->lo < range->hi && range->lo >= last);
					last = range->hi;
				}
			}
			MUST(s->last.lo == s->last.hi || (s->last.lo < s->last.hi && s->last.lo >= last));
		}
}

/* Data sequence numbers of a subflow's numbers are a sorted set of disjoint ranges. */
static void check_mappings(const struct nwa *a)
{
	uint64_t flows;

	(void)rows(a, nwa_table_flows, &flows);
	for (uint64_t i = 0; i < flows; i++)
		for (int d = 0; d < 2; d++) {
			const struct mappings *m = a->flows[i]->half[d].mappings;
			int64_t last = INT64_MIN;

			for (uint32_t k = 0; m && k < m->count; k++) {
				MUST(m->list[k].seq < m->list[k].end && m->list[k].seq >= last);
				last = m->list[k].end;
			}
		}
}

/* Tunnels' packets are those of the files that are in one. */
static void check_tunnels(const struct nwa *a)
{
	uint64_t sources, tunnels, paths, in_files = 0, in_tunnels = 0;
	const struct nwa_source *source = rows(a, nwa_table_sources, &sources);
	const struct nwa_tunnel *tunnel = rows(a, nwa_table_tunnels, &tunnels);

	(void)rows(a, nwa_table_paths, &paths);
	for (uint64_t i = 0; i < sources; i++)
		in_files += source[i].tunnelled;
	for (uint64_t i = 0; i < tunnels; i++) {
		MUST(tunnel[i].path < paths && tunnel[i].kind);
		in_tunnels += tunnel[i].packets[0] + tunnel[i].packets[1];
	}
	MUST(in_files == in_tunnels);
}

/* Every IP packet of no flow is in one conversation, but copies and fragments. */
static void check_conversations(const struct nwa *a)
{
	uint64_t n, packets, paths, alone = 0, counted = 0;
	const struct nwa_conversation *one = rows(a, nwa_table_conversations, &n);
	const struct nwa_packet *packet = rows(a, nwa_table_packets, &packets);

	(void)rows(a, nwa_table_paths, &paths);
	for (uint64_t i = 0; i < packets; i++)
		alone += packet[i].flow == NWA_NONE && packet[i].path != NWA_NONE &&
			 !(packet[i].marks & (NWA_MARK_COPY | NWA_MARK_FRAGMENT));
	for (uint64_t i = 0; i < n; i++) {
		MUST(one[i].path < paths && one[i].first_ns <= one[i].last_ns);
		counted += one[i].packets[0] + one[i].packets[1];
	}
	MUST(alone <= counted);
}

/* Sorted files have no time before the last. */
static void check_order(const struct nwa *a)
{
	uint64_t n;
	const struct nwa_packet *packet = rows(a, nwa_table_packets, &n);

	for (uint64_t i = 1; i < n; i++)
		MUST(packet[i].time_ns >= packet[i - 1].time_ns);
}

/* The tables of totals, read in parts or at once, are the same. */
static void check_same_totals(const struct nwa *one, const struct nwa *other)
{
	for (uint32_t t = 0; t < nwa_table_packets; t++) {
		const struct nwa_field *fields;
		uint32_t row_bytes, count;
		uint64_t n, m;
		const uint8_t *mine = nwa_rows(one, t, &n), *theirs = nwa_rows(other, t, &m);

		(void)nwa_describe(t, &row_bytes, &count, &fields);
		MUST(n == m);
		for (uint64_t i = 0; i < n * count; i++) { /* by fields: what lies between them is nothing */
			const struct nwa_field *f = &fields[i % count];
			size_t at = i / count * row_bytes + f->offset;

			MUST(!memcmp(mine + at, theirs + at, strtoul(f->type + 1, NULL, 10) * f->values));
		}
	}
}

/* The place where an unpacker sees damage depends on the size of the pieces that it is given. */
static bool damaged_packing(const struct nwa *a, uint32_t files)
{
	for (uint32_t i = 0; i < files; i++)
		if (a->files[i].capture.stream.kind != STREAM_PLAIN &&
		    (nwa_trouble(a, i)[0] || nwa_error(a)[0]))
			return true;
	return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct memory_file files[2];
	uint32_t options, wanted, count = 1;
	struct nwa *a, *parts;
	uint8_t way;

	if (size < 2)
		return 0;
	way = data[0];
	options = way & CHECKSUMS ? NWA_CHECKSUMS : 0;
	if (!(way & TWO_FILES)) {
		options |= way & SORTED ? NWA_SORT : 0;
		options |= way & WITHOUT_COPIES ? NWA_LEAVE_COPIES : 0;
	}
	wanted = way & TOTALS_ONLY ? 0 : UINT32_MAX;
	files[0] = (struct memory_file){.data = data + 1, .bytes = size - 1};
	if (way &
	    TWO_FILES) { /* the same twice: times are equal all the way; or cut in two by the upper bits */
		files[1] = files[0];
		if (way >> 4)
			files[1].bytes = files[1].bytes * (way >> 4) / 16;
		count = 2;
	}
	a = nwa_open_memory(files, count, wanted, options);
	MUST(a);
	(void)nwa_read(a, 0);
	if (wanted) {
		check_sources(a);
		check_totals(a);
		check_rows(a);
		check_quic(a);
	}
	check_ranges(a);
	check_mappings(a);
	check_tunnels(a);
	check_conversations(a);
	if (options & NWA_SORT)
		check_order(a);
	if (way & (IN_PARTS | IN_PIECES)) {
		if (way & IN_PIECES) /* as a pipe gives them */
			files[0].at_once = files[1].at_once = 1 + size % 97;
		parts = nwa_open_memory(files, count, ~wanted, options);
		MUST(parts);
		while (nwa_read(parts, 3) > 0)
			nwa_clear(parts);
		if (!damaged_packing(a, count))
			check_same_totals(a, parts);
		nwa_close(parts);
	}
	nwa_close(a);
	return 0;
}
