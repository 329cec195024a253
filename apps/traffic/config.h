/* SPDX-License-Identifier: Apache-2.0 */
/* config: every option of `sender` and `receiver`, read, checked and reported from one table. */
#ifndef NETWARP_CONFIG_H
#define NETWARP_CONFIG_H

#include "options.h"

#define ROLE_SENDER   1U
#define ROLE_RECEIVER 2U

#define PROTOCOL_TCP   1U
#define PROTOCOL_SCTP  2U
#define PROTOCOL_MPTCP 4U

struct config {
	const char *protocol;
	struct address_list bind, to, peer, primary;
	int64_t port, token;
	int64_t message_bytes, streams;
	int64_t t0_realtime_ns, start_ns, stop_ns, total_bytes;
	int64_t rcvbuf_bytes, sndbuf_bytes, window_clamp_bytes;
	const char *congestion;
	int64_t mss_bytes;
	bool nodelay;
	bool separate_sends;
	bool read_each;
	struct timed_address_list switch_primary;
	int64_t rto_initial_ns, rto_min_ns, rto_max_ns;
	int64_t path_max_retrans, association_max_retrans, pf_retrans, ps_retrans;
	int64_t heartbeat_interval_ns;
	bool no_heartbeats;
	int64_t sack_delay_ns, sack_frequency;
	int64_t max_burst, path_mtu_bytes;
	int64_t init_attempts, init_max_timeout_ns;
	bool no_fragments;
	const char *scheduler;
	struct number_list stream_values;
	bool unordered;
	int64_t ppid, lifetime_ns, max_retransmissions;
	const char *connect;
	bool bare;
	int64_t pacing_rate_bit_s;
	int64_t interval_ns;
	struct number_list burst_bytes;
	int64_t sample_interval_ns;
	int64_t connect_deadline_ns, stall_deadline_ns;
	const char *close;
};

struct ndjson;

/*
 * Read the command line (and NETWARP_T0_REALTIME_NS). Returns -1 to go on; else the exit status: 0 after
 * --help, 2 after a usage error, reported on stderr.
 */
int config_read(struct config *config, unsigned int role, int argc, char **argv);

unsigned int config_protocol(const struct config *config);

/* The `options` record: every option's value in force, and what the process runs on. */
void config_write(const struct config *config, unsigned int role, struct ndjson *out);

#endif
