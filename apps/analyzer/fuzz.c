/*
 * libFuzzer's entry: any bytes as a capture. Besides what the sanitisers see, what must hold of every result
 * is checked here, so that a wrong number aborts like a wrong access. replay.c gives it files (no clang
 * needed).
 */
#include <stdlib.h>

#include "flow.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition)                                                                                      \
	do {                                                                                                 \
		if (!(condition))                                                                            \
			abort();                                                                             \
	} while (0)

static const void *rows(const struct nwa *a, enum nwa_table table, uint64_t *count)
{
	return nwa_rows(a, table, count);
}

static void check(const struct nwa *a)
{
	uint64_t n, flows, paths, blocks, inits, total = 0, packets_total = 0;
	const struct nwa_packet *packet;
	const struct nwa_chunk *chunk;
	const struct nwa_sack *sack;
	const struct nwa_source *source;
	const struct nwa_segment *segment;
	const struct nwa_address *address;
	const struct nwa_cause *cause;

	(void)rows(a, nwa_table_flows, &flows);
	(void)rows(a, nwa_table_paths, &paths);
	(void)rows(a, nwa_table_blocks, &blocks);
	(void)rows(a, nwa_table_inits, &inits);
	packet = rows(a, nwa_table_packets, &n);
	for (uint64_t i = 0; i < n; i++) {
		MUST(packet[i].flow == NWA_NONE || packet[i].flow < flows);
		MUST(packet[i].path == NWA_NONE || packet[i].path < paths);
		MUST(packet[i].new_bytes <= packet[i].payload_bytes);
		MUST(packet[i].direction < 2 && packet[i].path_direction < 2);
		packets_total++;
	}
	source = rows(a, nwa_table_sources, &n);
	for (uint64_t i = 0; i < n; i++) {
		MUST(source[i].arp + source[i].ipv4 + source[i].ipv6 + source[i].other <= source[i].packets);
		total += source[i].packets;
	}
	MUST(nwa_error(a)[0] || total == packets_total);
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
	(void)rows(a, nwa_table_chunks, &total);
	cause = rows(a, nwa_table_causes, &n);
	for (uint64_t i = 0; i < n; i++)
		MUST(cause[i].flow < flows && cause[i].chunk < total && cause[i].length >= 4);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* the first byte chooses: checksums, tables, reading in parts */
	uint32_t options = size ? data[0] & NWA_CHECKSUMS : 0;
	bool parts = size && data[0] & 2, totals = size && data[0] & 4;
	struct nwa *a;

	if (!size)
		return 0;
	a = nwa_open_memory(data + 1, size - 1, totals ? 0 : UINT32_MAX, options);
	MUST(a);
	if (parts) {
		while (nwa_read(a, 3) > 0)
			nwa_clear(a);
	} else {
		(void)nwa_read(a, 0);
		if (!totals)
			check(a);
	}
	nwa_close(a);
	return 0;
}
