/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config: the options of `sender` and `receiver`: reads and checks the command line, and reports the values
 * in force. The table of options (name, unit, range, default, meaning) is in config.c; `sender --help`
 * prints it.
 */
#ifndef NETWARP_CONFIG_H
#define NETWARP_CONFIG_H

#include "options.h"

#define ROLE_SENDER   1U
#define ROLE_RECEIVER 2U

#define PROTOCOL_TCP   1U
#define PROTOCOL_SCTP  2U
#define PROTOCOL_MPTCP 4U
#define PROTOCOL_UDP   8U

/*
 * Values in base units. A number that was not given is OPTION_NOT_GIVEN, a word NULL. The members are named
 * as the options; orchestrator/netwarp/testbed writes the command lines.
 */
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
	const char *heartbeats;
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
	const char *messages;
	bool duplex;
	const char *peer_messages;
	int64_t peer_total_bytes, reverse_streams;
	int64_t streams_out; /* no option: streams that this end sends on, OPTION_NOT_GIVEN without any */
	const char *t0_file;
	int64_t sample_interval_ns;
	int64_t connect_deadline_ns, stall_deadline_ns;
	const char *close;
	int64_t local_port, reconnect_ns;
	bool loss_ends, again;
	const char *ecn;
};

struct ndjson;

/*
 * Read the command line and the environment variable NETWARP_T0_REALTIME_NS. Returns -1 when the program can
 * continue; otherwise its exit status: 0 after --help, 2 after a usage error, which was printed on stderr.
 */
int config_read(struct config *config, unsigned int role, int argc, char **argv);

/* PROTOCOL_* of --protocol. */
unsigned int config_protocol(const struct config *config);

/*
 * Write the record `options`: the value of every option, the kernel's release, and the process
 * (docs/formats.md).
 */
void config_write(const struct config *config, unsigned int role, struct ndjson *out);

#endif
