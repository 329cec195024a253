// SPDX-License-Identifier: Apache-2.0
/* Documented in config.h. */
#include "config.h"

#include "clock.h"
#include "ndjson.h"
#include "pattern.h"
#include "sctp_api.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#define BOTH	   (ROLE_SENDER | ROLE_RECEIVER)
#define CONNECTED  (PROTOCOL_TCP | PROTOCOL_SCTP | PROTOCOL_MPTCP)
#define ANY	   (CONNECTED | PROTOCOL_UDP)
#define AT(member) offsetof(struct config, member)
#define NONE	   OPTION_NOT_GIVEN
/* 31 bit: the kernel's buffer sizes and window are ints, and it doubles what SO_RCVBUF asks for */
#define BUFFER_MAX (INT32_MAX / 2)
#define MS	   INT64_C(1000000)
/* the kernel keeps SCTP's times in 32 bit, and in jiffies */
#define MS_MAX	  (INT64_C(24) * 3600 * 1000 * MS)
#define YEARS_100 (INT64_C(100) * 366 * 24 * 3600 * NS_PER_S)

/* Columns: struct option_row. A new option also goes into orchestrator/netwarp/experiment/options.py; a test
 * reads this text. */
static const struct option_row rows[] = {
    {"protocol", OPTION_WORD, BOTH, ANY, AT(protocol), 0, 0, 0, "tcp|sctp|mptcp|udp",
     "tcp, sctp, mptcp or udp", "sctp"},
    {"bind", OPTION_ADDRESSES, BOTH, ANY, AT(bind), 0, 0, 0, NULL,
     "local address; several: SCTP binds all of them, TCP and MPTCP the first. None: any address",
     "10.0.1.1"},
    {"to", OPTION_ADDRESSES, ROLE_SENDER, ANY, AT(to), 0, 0, 0, NULL,
     "the receiver's address; several: SCTP sctp_connectx, the first is tried first; MPTCP connects to the "
     "first, "
     "the others are its path manager's; TCP has one",
     "10.0.1.2"},
    {"peer", OPTION_ADDRESSES, ROLE_RECEIVER, ANY, AT(peer), 0, 0, 0, NULL,
     "take a connection only from these addresses (SCTP: from an association that has no others); anyone "
     "else's "
     "is aborted. None: from anybody",
     "10.0.1.1"},
    {"port", OPTION_NUMBER, BOTH, ANY, AT(port), 1, 65535, NONE, NULL, "the receiver's port", "5001"},
    {"token", OPTION_NUMBER, BOTH, ANY, AT(token), 0, INT64_MAX, NONE, NULL,
     "of the run, in every byte of the payload: a receiver refuses a flow that begins without it",
     "5577006791947779410"},
    {"message-bytes", OPTION_NUMBER, BOTH, ANY, AT(message_bytes), 1, (int64_t)PATTERN_MESSAGE_MAX, NONE,
     NULL,
     "bytes of one message. SCTP: one user message. TCP, MPTCP: every write hands over whole messages, as "
     "many "
     "as fit into 256 KiB",
     "1452"},
    {"streams", OPTION_NUMBER, BOTH, PROTOCOL_SCTP, AT(streams), 1, 65535, NONE, NULL,
     "SCTP streams. Sender: messages go round robin over that many (1 when not given). Receiver: the most it "
     "accepts (65535 when not given)",
     "4"},
    {"t0-realtime-ns", OPTION_NUMBER, BOTH, ANY, AT(t0_realtime_ns), 0, INT64_MAX / 2, NONE, NULL,
     "T0 on CLOCK_REALTIME; else NETWARP_T0_REALTIME_NS, else the moment the program starts",
     "1700000000000000000"},
    {"start-ns", OPTION_NUMBER, BOTH, ANY, AT(start_ns), 0, YEARS_100, 0, NULL,
     "connect at T0 + this (and 1 us, so that a timeline event of the same time comes first)", "500000000"},
    {"stop-ns", OPTION_NUMBER, BOTH, ANY, AT(stop_ns), 0, YEARS_100, NONE, NULL,
     "from T0 + this on no byte is handed to the kernel", "100000000000"},
    {"total-bytes", OPTION_NUMBER, BOTH, ANY, AT(total_bytes), 1, INT64_MAX / 2, NONE, NULL,
     "stop after that much payload; the last message is shorter if need be", "1000000"},
    {"rcvbuf-bytes", OPTION_NUMBER, BOTH, ANY, AT(rcvbuf_bytes), 1, BUFFER_MAX, NONE, NULL,
     "SO_RCVBUF, set before listen or connect (SO_RCVBUFFORCE where allowed). SCTP offers it as a_rwnd. A "
     "value "
     "the kernel does not take exactly is an error",
     "65536"},
    {"sndbuf-bytes", OPTION_NUMBER, BOTH, ANY, AT(sndbuf_bytes), 1, BUFFER_MAX, NONE, NULL,
     "SO_SNDBUF, likewise", "262144"},
    {"window-clamp-bytes", OPTION_NUMBER, ROLE_RECEIVER, PROTOCOL_TCP, AT(window_clamp_bytes), 4096,
     BUFFER_MAX / 4, NONE, NULL,
     "the largest window ever offered, exactly: a multiple of 2, from 128 KiB on of 4, and so on", "65700"},
    {"read-each", OPTION_FLAG, ROLE_RECEIVER, CONNECTED, AT(read_each), 0, 0, 0, NULL,
     "be woken for each packet instead of once for many: the same on the wire, slower in a guest", NULL},
    {"congestion", OPTION_WORD, BOTH, PROTOCOL_TCP | PROTOCOL_MPTCP, AT(congestion), 0, 0, 0, NULL,
     "TCP_CONGESTION", "reno"},
    {"mss-bytes", OPTION_NUMBER, BOTH, PROTOCOL_TCP | PROTOCOL_SCTP, AT(mss_bytes), 88, 32767, NONE, NULL,
     "TCP_MAXSEG; SCTP_MAXSEG (the most user data of one chunk, it does not limit the packet)", "1460"},
    {"nodelay", OPTION_FLAG, BOTH, CONNECTED, AT(nodelay), 0, 0, 0, NULL,
     "TCP_NODELAY, SCTP_NODELAY: do not hold back a packet that is not full", NULL},
    {"separate-sends", OPTION_FLAG, ROLE_SENDER, PROTOCOL_TCP | PROTOCOL_MPTCP, AT(separate_sends), 0, 0, 0,
     NULL, "every message in a send call of its own (SCTP always does so)", NULL},
    {"primary", OPTION_ADDRESS, ROLE_SENDER, PROTOCOL_SCTP, AT(primary), 0, 0, 0, NULL,
     "the peer address that is primary from the start", "10.0.2.2"},
    {"switch-primary", OPTION_TIMED_ADDRESS, ROLE_SENDER, PROTOCOL_SCTP, AT(switch_primary), 0, YEARS_100, 0,
     NULL, "NS,ADDRESS: make ADDRESS the primary at T0 + NS (and 1 us); may be repeated, in order",
     "50000000000,10.0.2.2"},
    {"rto-initial-ns", OPTION_NUMBER, BOTH, PROTOCOL_SCTP, AT(rto_initial_ns), MS, MS_MAX, NONE, NULL,
     "SCTP_RTOINFO, in whole milliseconds: the RTO of a path before its first measurement", "1000000000"},
    {"rto-min-ns", OPTION_NUMBER, BOTH, PROTOCOL_SCTP, AT(rto_min_ns), MS, MS_MAX, NONE, NULL,
     "likewise: its lower bound", "200000000"},
    {"rto-max-ns", OPTION_NUMBER, BOTH, PROTOCOL_SCTP, AT(rto_max_ns), MS, MS_MAX, NONE, NULL,
     "likewise: its upper bound", "5000000000"},
    {"path-max-retrans", OPTION_NUMBER, BOTH, PROTOCOL_SCTP, AT(path_max_retrans), 1, 65535, NONE, NULL,
     "SCTP_PEER_ADDR_THLDS_V2: more errors in a row make a path INACTIVE (the kernel cannot set 0)", "5"},
    {"association-max-retrans", OPTION_NUMBER, BOTH, PROTOCOL_SCTP, AT(association_max_retrans), 1, 65535,
     NONE, NULL, "SCTP_ASSOCINFO: that many errors in a row over all paths end the association", "10"},
    {"pf-retrans", OPTION_NUMBER, BOTH, PROTOCOL_SCTP, AT(pf_retrans), 0, 65535, NONE, NULL,
     "SCTP_PEER_ADDR_THLDS_V2: more errors in a row make a path POTENTIALLY_FAILED (net.sctp.pf_enable = 1)",
     "0"},
    {"ps-retrans", OPTION_NUMBER, BOTH, PROTOCOL_SCTP, AT(ps_retrans), 0, 65535, NONE, NULL,
     "SCTP_PEER_ADDR_THLDS_V2: more errors in a row make another path the primary for good; 65535: never",
     "0"},
    {"heartbeat-interval-ns", OPTION_NUMBER, BOTH, PROTOCOL_SCTP, AT(heartbeat_interval_ns), 0, MS_MAX, NONE,
     NULL,
     "SCTP_PEER_ADDR_PARAMS, in whole milliseconds: between heartbeats there is this plus the RTO; 0: the "
     "RTO alone",
     "5000000000"},
    {"no-heartbeats", OPTION_FLAG, BOTH, PROTOCOL_SCTP, AT(no_heartbeats), 0, 0, 0, NULL,
     "SCTP_PEER_ADDR_PARAMS: no heartbeats", NULL},
    {"heartbeats", OPTION_WORD, BOTH, PROTOCOL_SCTP, AT(heartbeats), 0, 0, 0, NULL,
     "SCTP_PEER_ADDR_PARAMS: file of the heartbeats that are sent, when and to which address "
     "(docs/formats.md, "
     "The apps); the kernel sends none of its own",
     "apps/n2.sender.heartbeats"},
    {"sack-delay-ns", OPTION_NUMBER, BOTH, PROTOCOL_SCTP, AT(sack_delay_ns), MS, 500 * MS, NONE, NULL,
     "SCTP_DELAYED_SACK, in whole milliseconds: the longest a SACK is put off", "200000000"},
    {"sack-frequency", OPTION_NUMBER, BOTH, PROTOCOL_SCTP, AT(sack_frequency), 1, 65535, NONE, NULL,
     "SCTP_DELAYED_SACK: a SACK after so many packets; 1: none is ever put off", "2"},
    {"max-burst", OPTION_NUMBER, BOTH, PROTOCOL_SCTP, AT(max_burst), 0, 65535, NONE, NULL,
     "SCTP_MAX_BURST: packets sent at once; 0: any number", "4"},
    {"path-mtu-bytes", OPTION_NUMBER, BOTH, PROTOCOL_SCTP, AT(path_mtu_bytes), 512, 65532, NONE, NULL,
     "SCTP_PEER_ADDR_PARAMS: the largest IP packet, a multiple of 4; path MTU discovery is off then", "1280"},
    {"init-attempts", OPTION_NUMBER, ROLE_SENDER, PROTOCOL_SCTP, AT(init_attempts), 1, 65535, NONE, NULL,
     "SCTP_INITMSG: how often an INIT is retransmitted", "4"},
    {"init-max-timeout-ns", OPTION_NUMBER, ROLE_SENDER, PROTOCOL_SCTP, AT(init_max_timeout_ns), MS,
     65535 * MS, NONE, NULL, "SCTP_INITMSG, in whole milliseconds: the longest RTO of an INIT", "8000000000"},
    {"no-fragments", OPTION_FLAG, ROLE_SENDER, PROTOCOL_SCTP, AT(no_fragments), 0, 0, 0, NULL,
     "SCTP_DISABLE_FRAGMENTS: a message that does not fit into one packet is an error", NULL},
    {"scheduler", OPTION_WORD, ROLE_SENDER, PROTOCOL_SCTP, AT(scheduler), 0, 0, 0, "fcfs|prio|rr|fc|wfq",
     "SCTP_STREAM_SCHEDULER: which stream's message goes next", "rr"},
    {"stream-values", OPTION_NUMBERS, ROLE_SENDER, PROTOCOL_SCTP, AT(stream_values), 0, 65535, 0, NULL,
     "SCTP_STREAM_SCHEDULER_VALUE of stream 0, 1, ...: prio's priority (0 is the first), fc's and wfq's "
     "weight",
     "0,1"},
    {"unordered", OPTION_FLAG, BOTH, PROTOCOL_SCTP, AT(unordered), 0, 0, 0, NULL,
     "SCTP_UNORDERED for every message", NULL},
    {"ppid", OPTION_NUMBER, BOTH, PROTOCOL_SCTP, AT(ppid), 0, UINT32_MAX, NONE, NULL,
     "payload protocol identifier of every message", "60"},
    {"lifetime-ns", OPTION_NUMBER, ROLE_SENDER, PROTOCOL_SCTP, AT(lifetime_ns), MS, MS_MAX, NONE, NULL,
     "SCTP_PR_SCTP_TTL, in whole milliseconds: a message older than this is given up", "500000000"},
    {"max-retransmissions", OPTION_NUMBER, ROLE_SENDER, PROTOCOL_SCTP, AT(max_retransmissions), 0, 65535,
     NONE, NULL, "SCTP_PR_SCTP_RTX: a message retransmitted more often is given up", "3"},
    {"connect", OPTION_WORD, ROLE_SENDER, PROTOCOL_SCTP, AT(connect), 0, 0, 0, "connect|connectx",
     "connect: to the first --to address, the others are learned from the peer and have to be confirmed by a "
     "heartbeat; connectx: to all of them, usable at once. Not given: connectx with several --to",
     "connect"},
    {"bare", OPTION_FLAG, ROLE_SENDER, PROTOCOL_SCTP, AT(bare), 0, 0, 0, NULL,
     "no SCTP socket option that is not asked for, where they are refused (under qemu-user): no "
     "notifications, no "
     "samples, one --bind, as many streams as the kernel offers by itself",
     NULL},
    {"pacing-rate-bit-s", OPTION_NUMBER, ROLE_SENDER, PROTOCOL_TCP, AT(pacing_rate_bit_s), 8,
     INT64_C(1000000000000), NONE, NULL, "SO_MAX_PACING_RATE, a multiple of 8", "2000000"},
    {"interval-ns", OPTION_NUMBER, BOTH, ANY, AT(interval_ns), 1000, YEARS_100, NONE, NULL,
     "a message (or the messages of --burst-bytes) is due at start + k times this, from the first such "
     "instant "
     "after the connection is up; not given: as fast as the kernel takes it",
     "1000000000"},
    {"burst-bytes", OPTION_NUMBERS, BOTH, ANY, AT(burst_bytes), 1, (int64_t)PATTERN_MESSAGE_MAX, 0, NULL,
     "with --interval-ns: sizes of the messages that are due together, instead of one of --message-bytes",
     "120,80,400"},
    {"messages", OPTION_WORD, BOTH, ANY, AT(messages), 0, 0, 0, NULL,
     "file of messages: when each is due, its bytes and its stream (docs/formats.md, The apps), instead of "
     "--interval-ns",
     "apps/n2.sender.messages"},
    {"duplex", OPTION_FLAG, BOTH, CONNECTED, AT(duplex), 0, 0, 0, NULL,
     "the receiver sends too, over the same connection: its options of messages are those of a sender", NULL},
    {"peer-messages", OPTION_WORD, BOTH, CONNECTED, AT(peer_messages), 0, 0, 0, NULL,
     "with --messages that answer the peer's: the file of the peer's messages", "apps/n2.receiver.messages"},
    {"peer-total-bytes", OPTION_NUMBER, ROLE_SENDER, CONNECTED, AT(peer_total_bytes), 1, INT64_MAX / 2, NONE,
     NULL, "with --duplex: the receiver's --total-bytes; the connection is closed once they are here too",
     "1000000"},
    {"reverse-streams", OPTION_NUMBER, ROLE_RECEIVER, PROTOCOL_SCTP, AT(reverse_streams), 1, 65535, NONE,
     NULL, "with --duplex: SCTP streams that its messages go over, round robin (1 when not given)", "4"},
    {"t0-file", OPTION_WORD, ROLE_RECEIVER, CONNECTED, AT(t0_file), 0, 0, 0, NULL,
     "with --duplex: file with T0 on CLOCK_REALTIME, read once the connection is up", "t0"},
    {"sample-interval-ns", OPTION_NUMBER, ROLE_SENDER, CONNECTED, AT(sample_interval_ns), 0, YEARS_100, 0,
     NULL,
     "report the transport's state that often, counted from the start; 0: never. In virtual time each sample "
     "costs some clock reads of 256 ns",
     "100000000"},
    {"connect-deadline-ns", OPTION_NUMBER, BOTH, CONNECTED, AT(connect_deadline_ns), 0, YEARS_100, 0, NULL,
     "give up when not connected for so long (sender: from its start; receiver: from listening); 0: when the "
     "kernel does",
     "60000000000"},
    {"stall-deadline-ns", OPTION_NUMBER, BOTH, CONNECTED, AT(stall_deadline_ns), 0, YEARS_100, 0, NULL,
     "give up when nothing was acknowledged (sender) or received (receiver) for so long; 0: when the kernel "
     "does",
     "120000000000"},
    {"close", OPTION_WORD, ROLE_SENDER, CONNECTED, AT(close), 0, 0, 0, "abort|graceful",
     "at the end: graceful sends all that is queued, shuts down and waits for the peer to close; abort drops "
     "the queue. Not given: graceful with --total-bytes, else abort",
     "graceful"},
    {"local-port", OPTION_NUMBER, ROLE_SENDER, ANY, AT(local_port), 1, 65535, NONE, NULL,
     "the sender's own port, of every connection it makes; not given: the kernel's choice", "2905"},
    {"reconnect-ns", OPTION_NUMBER, ROLE_SENDER, CONNECTED, AT(reconnect_ns), 0, YEARS_100, NONE, NULL,
     "connect again so long after the connection is lost or an attempt fails; the receiver has --again. Not "
     "given: the flow ends there",
     "1000000000"},
    {"ecn", OPTION_WORD, ROLE_SENDER, PROTOCOL_UDP, AT(ecn), 0, 0, 0, "not-ect|ect0|ect1|ce",
     "IP_TOS, IPV6_TCLASS: the codepoint of every datagram", "ect1"},
    {"loss-ends", OPTION_FLAG, ROLE_SENDER, CONNECTED, AT(loss_ends), 0, 0, 0, NULL,
     "that the peer closes or aborts the connection is an end like any other, no failure", NULL},
    {"again", OPTION_FLAG, ROLE_RECEIVER, CONNECTED, AT(again), 0, 0, 0, NULL,
     "take connections one after another: a new one takes the place of the one there is; reads as with "
     "--read-each",
     NULL},
};

static struct option_table table_of(unsigned int role)
{
	struct option_table table = {
	    .program = role == ROLE_SENDER ? "sender" : "receiver",
	    .role = role,
	    .rows = rows,
	    .count = sizeof(rows) / sizeof(rows[0]),
	};

	return table;
}

unsigned int config_protocol(const struct config *config)
{
	if (strcmp(config->protocol, "tcp") == 0)
		return PROTOCOL_TCP;
	if (strcmp(config->protocol, "udp") == 0)
		return PROTOCOL_UDP;
	return strcmp(config->protocol, "sctp") == 0 ? PROTOCOL_SCTP : PROTOCOL_MPTCP;
}

/* Checks the options that an end that sends needs. */
static int check_messages(const struct option_table *table, const struct config *config,
			  struct option_result *result)
{
	if (config->message_bytes == NONE)
		return options_error(table, "message-bytes", "has to be given", result);
	if (config->stop_ns == NONE && config->total_bytes == NONE && table->role == ROLE_SENDER)
		return options_error(table, "stop-ns", "this or --total-bytes has to be given", result);
	if (config->stop_ns != NONE && config->stop_ns <= config->start_ns)
		return options_error(table, "stop-ns", "has to be later than --start-ns", result);
	if (config->burst_bytes.count && config->interval_ns == NONE)
		return options_error(table, "burst-bytes", "needs --interval-ns", result);
	if (config->messages && config->interval_ns != NONE)
		return options_error(table, "messages", "not together with --interval-ns", result);
	if (config->messages && config->separate_sends)
		return options_error(table, "separate-sends",
				     "needs messages of one size: not with --messages", result);
	return 0;
}

static int check_duplex(const struct option_table *table, const struct config *config,
			struct option_result *result)
{
	const char *given = NULL;

	if (config->duplex && config->bare)
		return options_error(table, "bare", "not together with --duplex", result);
	if (config->duplex)
		return 0;
	if (config->peer_messages || config->peer_total_bytes != NONE)
		given = config->peer_messages ? "peer-messages" : "peer-total-bytes";
	else if (table->role == ROLE_SENDER)
		return 0;
	else if (config->messages || config->interval_ns != NONE)
		given = config->messages ? "messages" : "interval-ns";
	else if (config->message_bytes != NONE || config->total_bytes != NONE)
		given = config->message_bytes != NONE ? "message-bytes" : "total-bytes";
	else if (config->unordered || config->ppid != NONE)
		given = config->unordered ? "unordered" : "ppid";
	else if (config->heartbeats || config->reverse_streams != NONE)
		given = config->heartbeats ? "heartbeats" : "reverse-streams";
	return given ? options_error(table, given, "needs --duplex", result) : 0;
}

static int check_sender(const struct option_table *table, const struct config *config,
			struct option_result *result)
{
	unsigned int i;

	if (config->to.count == 0)
		return options_error(table, "to", "has to be given", result);
	if (config->to.count > 1 && config_protocol(config) == PROTOCOL_TCP)
		return options_error(table, "to", "a TCP connection has one peer address", result);
	if (config_protocol(config) == PROTOCOL_UDP && config->to.count > 1)
		return options_error(table, "to", "datagrams go to one address", result);
	if (config_protocol(config) == PROTOCOL_UDP && config->interval_ns == NONE && !config->messages)
		return options_error(table, "interval-ns",
				     "this or --messages has to be given: nothing holds UDP back", result);
	if (config->reconnect_ns != NONE && config->total_bytes != NONE)
		return options_error(table, "reconnect-ns",
				     "not together with --total-bytes: what was under "
				     "way is lost with a connection",
				     result);
	if (config->pacing_rate_bit_s % 8 > 0)
		return options_error(table, "pacing-rate-bit-s", "has to be a multiple of 8", result);
	if (config->to.count > 1 && config->primary.count &&
	    !address_list_holds(&config->to, &config->primary.items[0].any, 1))
		return options_error(table, "primary", "is none of the --to addresses", result);
	for (i = 0; i < config->switch_primary.count; i++) {
		if (config->to.count > 1 &&
		    !address_list_holds(&config->to, &config->switch_primary.items[i].any, 1))
			return options_error(table, "switch-primary", "is none of the --to addresses",
					     result);
		if (config->switch_primary.at_ns[i] < config->start_ns)
			return options_error(table, "switch-primary", "is before --start-ns", result);
	}
	return 0;
}

static int check_families(const struct option_table *table, const struct config *config,
			  struct option_result *result)
{
	if (config_protocol(config) == PROTOCOL_SCTP || !config->bind.count || !config->to.count)
		return 0;
	if (config->bind.items[0].any.sa_family == config->to.items[0].any.sa_family)
		return 0;
	return options_error(table, "bind", "IPv4 and IPv6 do not mix in one connection", result);
}

/* Options that the kernel takes in milliseconds. */
static const struct {
	const char *name;
	size_t offset;
} milliseconds[] = {
    {"rto-initial-ns", AT(rto_initial_ns)}, {"rto-min-ns", AT(rto_min_ns)},
    {"rto-max-ns", AT(rto_max_ns)},	    {"heartbeat-interval-ns", AT(heartbeat_interval_ns)},
    {"sack-delay-ns", AT(sack_delay_ns)},   {"init-max-timeout-ns", AT(init_max_timeout_ns)},
    {"lifetime-ns", AT(lifetime_ns)},
};

static int check_sctp(const struct option_table *table, const struct config *config,
		      struct option_result *result)
{
	size_t i;
	int64_t value;

	if (!HAVE_LIBSCTP && config_protocol(config) == PROTOCOL_SCTP) {
		if (table->role == ROLE_SENDER && !config->bare)
			return options_error(
			    table, "bare", "has to be given: this program was built without libsctp", result);
		if (config->peer.count)
			return options_error(table, "peer",
					     "needs libsctp, which this program was built without", result);
	}
	for (i = 0; i < sizeof(milliseconds) / sizeof(milliseconds[0]); i++) {
		memcpy(&value, (const char *)config + milliseconds[i].offset, sizeof(value));
		if (value != NONE && value % MS)
			return options_error(table, milliseconds[i].name, "has to be whole milliseconds",
					     result);
	}
	if (config->path_mtu_bytes % 4 > 0)
		return options_error(table, "path-mtu-bytes", "has to be a multiple of 4", result);
	if (config->rto_min_ns != NONE && config->rto_max_ns != NONE &&
	    config->rto_min_ns > config->rto_max_ns)
		return options_error(table, "rto-min-ns", "is above --rto-max-ns", result);
	if (config->pf_retrans != NONE && config->ps_retrans != NONE &&
	    config->pf_retrans > config->ps_retrans)
		return options_error(table, "pf-retrans", "is above --ps-retrans", result);
	if (config->sack_frequency == 1 && config->sack_delay_ns != NONE)
		return options_error(table, "sack-delay-ns", "means nothing with --sack-frequency 1", result);
	if (config->no_heartbeats && config->heartbeat_interval_ns != NONE)
		return options_error(table, "heartbeat-interval-ns", "not together with --no-heartbeats",
				     result);
	if (config->heartbeats && config->bare)
		return options_error(table, "heartbeats", "not together with --bare", result);
	if (config->lifetime_ns != NONE && config->max_retransmissions != NONE)
		return options_error(table, "lifetime-ns",
				     "a message has one such limit: not with --max-retransmissions", result);
	if (config->stream_values.count > (config->streams == NONE ? 1 : config->streams))
		return options_error(table, "stream-values", "has more numbers than --streams", result);
	return 0;
}

static int check_clamp(const struct option_table *table, const struct config *config,
		       struct option_result *result)
{
	int64_t step = 2;
	char reason[120];

	if (config->window_clamp_bytes == NONE)
		return 0;
	if (config->again)
		return options_error(table, "window-clamp-bytes", "is of one connection: not with --again",
				     result);
	if (config->rcvbuf_bytes != NONE)
		return options_error(table, "window-clamp-bytes",
				     "sets the receive buffer too: not together with "
				     "--rcvbuf-bytes",
				     result);
	/* the window scale Linux derives from the clamp (tcp_select_initial_window) */
	while (config->window_clamp_bytes / step > 65535)
		step *= 2;
	if (config->window_clamp_bytes % step == 0)
		return 0;
	snprintf(reason, sizeof(reason), "a window of that size is offered in steps of %lld bytes",
		 (long long)step);
	return options_error(table, "window-clamp-bytes", reason, result);
}

/* T0: --t0-realtime-ns, else the environment. */
static int read_t0(const struct option_table *table, struct config *config, struct option_result *result)
{
	const char *text = getenv("NETWARP_T0_REALTIME_NS");
	char *end;

	if (config->t0_realtime_ns != NONE || !text)
		return 0;
	errno = 0;
	config->t0_realtime_ns = strtoll(text, &end, 10);
	if (errno || end == text || *end || config->t0_realtime_ns < 0 ||
	    config->t0_realtime_ns > INT64_MAX / 2)
		return options_error(table, "t0-realtime-ns", "NETWARP_T0_REALTIME_NS is not a time", result);
	return 0;
}

static int check(const struct option_table *table, struct config *config, struct option_result *result)
{
	if (!config->protocol)
		return options_error(table, "protocol", "has to be given", result);
	if (options_refuse(table, config_protocol(config), config->protocol, result))
		return -1;
	if (config->port == NONE)
		return options_error(table, "port", "has to be given", result);
	if (table->role == ROLE_SENDER && check_sender(table, config, result))
		return -1;
	if (check_duplex(table, config, result))
		return -1;
	if ((table->role == ROLE_SENDER || config->duplex) &&
	    (check_messages(table, config, result) || read_t0(table, config, result)))
		return -1;
	if (check_families(table, config, result) || check_sctp(table, config, result) ||
	    check_clamp(table, config, result))
		return -1;
	return 0;
}

/* Fills in defaults that depend on other options; a value the protocol does not have stays "not given". */
static void complete(struct config *config, unsigned int role)
{
	if (config->streams == NONE && config_protocol(config) == PROTOCOL_SCTP)
		config->streams = role == ROLE_SENDER ? 1 : 65535;
	config->read_each |= config->again;
	config->streams_out = role == ROLE_SENDER ? config->streams : config->reverse_streams;
	if (role != ROLE_SENDER)
		return;
	if (!config->close)
		config->close = config->total_bytes == NONE || config_protocol(config) == PROTOCOL_UDP
				    ? "abort"
				    : "graceful";
	if (!config->connect && config_protocol(config) == PROTOCOL_SCTP)
		config->connect = config->to.count > 1 ? "connectx" : "connect";
	if (config->t0_realtime_ns == NONE)
		config->t0_realtime_ns = clock_realtime_ns();
}

int config_read(struct config *config, unsigned int role, int argc, char **argv)
{
	struct option_table table = table_of(role);
	struct option_result result;

	memset(config, 0, sizeof(*config));
	if (options_parse(&table, argc, argv, config, &result) == 0 && result.help) {
		options_help(&table, role == ROLE_SENDER ? "sends one flow of checkable payload"
							 : "receives one flow and checks every byte of it");
		return 0;
	}
	if (result.message[0] || check(&table, config, &result)) {
		fprintf(stderr, "%s\n", result.message);
		return 2;
	}
	complete(config, role);
	if (config->token != NONE)
		pattern_token((uint64_t)config->token);
	return -1;
}

void config_write(const struct config *config, unsigned int role, struct ndjson *out)
{
	struct option_table table = table_of(role);
	struct utsname kernel;

	ndjson_begin(out, "options");
	ndjson_str(out, "program", table.program);
	ndjson_int(out, "pid", getpid());
	ndjson_int(out, "monotonic_ns", clock_monotonic_ns());
	ndjson_int(out, "realtime_ns", clock_realtime_ns());
	uname(&kernel);
	ndjson_str(out, "kernel", kernel.release);
	options_write(&table, config, out);
	ndjson_end(out);
}
