// SPDX-License-Identifier: Apache-2.0
/* SCTP (RFC 9260) over a one-to-one style socket (RFC 6458 section 4). */
#include "transport.h"

#include "bulk.h"
#include "clock.h"
#include "pattern.h"
#include "sctp_api.h"
#include "sctp_batch.h"
#include "sctp_log.h"
#include "sctp_options.h"
#include "sctp_socket.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* A received message longer than a slot arrives in pieces; 64 slots of that size make RECV_BYTES. */
#define RECV_SLOT_BYTES	  16384
#define RECV_BYTES	  1048576
#define NOTIFY_SLOT_BYTES 4096
/* seconds; longer than the kernel retransmits. A signal ends the wait */
#define BARE_LINGER_S 3600
/* At most so much user data is in one packet on a link with Ethernet's MTU (1500 - 20 - 12 - 16). */
#define ONE_PACKET_BYTES 1452

struct sctp {
	struct sctp_batch in, out;
	bool in_notification; /* the rest of one is still to come */
	bool ended;	      /* the association is gone, by a notification */
	bool shut;
	int error; /* of the association: reported once what arrived before it has been read */
	int64_t jiffy_ns;
	bool have_stats;
	struct sctp_assoc_stats stats; /* the last ones the kernel gave */
	struct sctp_peers peers;
};

static int prepare(struct flow *flow, struct sctp *sctp)
{
	int result;

	if (flow_receives(flow))
		result = sctp_batch_open(&sctp->in, RECV_SLOT_BYTES, RECV_BYTES);
	else
		result = sctp_batch_open(&sctp->in, NOTIFY_SLOT_BYTES, 4 * NOTIFY_SLOT_BYTES);
	if (flow_sends(flow) && !result)
		result = sctp_batch_open(&sctp->out, (size_t)schedule_largest(&flow->schedule), BATCH_BYTES);
	return result ? flow_error(flow, "memory", ENOMEM, NULL) : 0;
}

static int assoc_open(struct flow *flow)
{
	struct sctp *sctp = calloc(1, sizeof(*sctp));
	struct timespec tick;
	int fd;

	flow->state = sctp;
	if (!sctp)
		return flow_error(flow, "memory", ENOMEM, NULL);
	/* the coarse clocks advance by one jiffy: the only place where user space sees the kernel's HZ */
	if (clock_getres(CLOCK_MONOTONIC_COARSE, &tick))
		return flow_error(flow, "clock_getres", errno, NULL);
	sctp->jiffy_ns = tick.tv_sec * NS_PER_S + tick.tv_nsec;
	if (prepare(flow, sctp))
		return -1;
	fd = sctp_socket_open(flow);
	if (fd < 0)
		return -1;
	*(flow->role == ROLE_RECEIVER ? &flow->listen_fd : &flow->fd) = fd;
	return 0;
}

static enum flow_io assoc_accept(struct flow *flow)
{
	struct sctp *sctp = flow->state;
	enum flow_io io = flow_accept(flow);

	if (io == FLOW_DONE) { /* it may take the place of another */
		sctp->in_notification = sctp->ended = sctp->have_stats = false;
		sctp->error = 0;
		sctp_peers_forget(&sctp->peers);
	}
	return io;
}

static int assoc_connect(struct flow *flow)
{
	const struct config *config = flow->config;
	union address packed[ADDRESS_LIST_MAX];
	bool all = strcmp(config->connect, "connectx") == 0;
	int result;

	address_pack(&config->to, (uint16_t)config->port, packed);
	if (all)
		result = sctp_connectx(flow->fd, &packed[0].any, (int)config->to.count, NULL);
	else
		result = connect(flow->fd, &packed[0].any, address_length(&packed[0].any));
	if (result < 0 && errno != EINPROGRESS)
		return flow_error(flow, all ? "sctp_connectx" : "connect", errno, NULL);
	return 0;
}

static int assoc_set_primary(struct flow *flow, const union address *address)
{
	union address with_port = *address;
	struct sctp_prim primary = {0};

	address_set_port(&with_port, (uint16_t)flow->config->port);
	memcpy(&primary.ssp_addr, &with_port, sizeof(with_port));
	return setsockopt(flow->fd, SOL_SCTP, SCTP_PRIMARY_ADDR, &primary, sizeof(primary));
}

static int assoc_heartbeat(struct flow *flow, const union address *address)
{
	struct sctp_paddrparams demand = {.spp_flags = SPP_HB_DEMAND}, own = {.spp_flags = SPP_HB_ENABLE};
	union address with_port = *address, peer;
	socklen_t len = sizeof(peer);

	if (address->any.sa_family == AF_UNSPEC)
		return setsockopt(flow->fd, SOL_SCTP, SCTP_PEER_ADDR_PARAMS, &own, sizeof(own));
	if (getpeername(flow->fd, &peer.any, &len))
		return -1;
	address_set_port(&with_port, address_port(&peer.any));
	memcpy(&demand.spp_address, &with_port, sizeof(with_port));
	return setsockopt(flow->fd, SOL_SCTP, SCTP_PEER_ADDR_PARAMS, &demand, sizeof(demand));
}

/* Without SCTP_STATUS: a one-to-one style socket has a peer from ESTABLISHED on (sctp_cmd_new_state). */
static bool has_peer(const struct flow *flow)
{
	union address peer;
	socklen_t len = sizeof(peer);

	return getpeername(flow->fd, &peer.any, &len) == 0;
}

static enum flow_io assoc_connected(struct flow *flow)
{
	struct sctp_status status = {0};
	socklen_t len = sizeof(status);
	char detail[100];
	int error = 0;

	if (flow_get(flow->fd, SOL_SOCKET, SO_ERROR, &error) || error) {
		flow_error(flow, "connect", error ? error : errno, NULL);
		return FLOW_FAILED;
	}
	if (flow->config->bare)
		return has_peer(flow) ? FLOW_DONE : FLOW_WAIT;
	if (!(flow->waiter.events & EPOLLOUT) || getsockopt(flow->fd, SOL_SCTP, SCTP_STATUS, &status, &len) ||
	    status.sstat_state != SCTP_ESTABLISHED)
		return FLOW_WAIT;
	if (status.sstat_outstrms >= flow->config->streams)
		return sctp_options_connected(flow) ? FLOW_FAILED : FLOW_DONE;
	snprintf(detail, sizeof(detail), "the peer accepts only %u streams", status.sstat_outstrms);
	flow_error(flow, "streams", EINVAL, detail);
	return FLOW_FAILED;
}

static enum flow_io lost(struct flow *flow, const char *what, int error)
{
	return flow_lost(flow, what, error,
			 error != EMSGSIZE ? NULL
			 : flow->config->no_fragments
			     ? "a message has to fit into one packet: see --no-fragments"
			     : "a message has to fit into the send buffer: see --sndbuf-bytes");
}

static enum flow_io assoc_send(struct flow *flow, uint64_t limit)
{
	struct sctp *sctp = flow->state;
	struct sctp_batch *out = &sctp->out;
	uint64_t bytes;
	int n;

	if (out->at == out->end)
		sctp_batch_fill(out, flow, limit - flow->sent_bytes);
	n = sctp_batch_send(out, flow->fd, &bytes);
	if (n < 0)
		return errno == EAGAIN ? FLOW_WAIT : lost(flow, "sendmmsg", errno);
	flow->sent_bytes += bytes;
	flow->sent_messages += (uint64_t)n;
	if (flow->sent_bytes == limit)
		return FLOW_DONE;
	/* stopped short: the buffer is full, or the association is gone, which is an event of its own */
	return out->at == out->end ? FLOW_MORE : FLOW_WAIT;
}

static void read_stats(struct flow *flow, struct sctp *sctp)
{
	struct sctp_assoc_stats stats = {0};
	socklen_t len = sizeof(stats);

	if (getsockopt(flow->fd, SOL_SCTP, SCTP_GET_ASSOC_STATS, &stats, &len))
		return;
	/* the kernel forgets the largest RTO with every read */
	if (stats.sas_maxrto < sctp->stats.sas_maxrto)
		stats.sas_maxrto = sctp->stats.sas_maxrto;
	sctp->stats = stats;
	sctp->have_stats = true;
}

static void notified(struct flow *flow, struct sctp *sctp, const void *data, size_t len)
{
	const union sctp_notification *n = data;

	sctp_log_notification(&flow->out, flow->read_ns, data, len);
	if (n->sn_header.sn_type == SCTP_PEER_ADDR_CHANGE)
		sctp_peers_forget(&sctp->peers);
	if (n->sn_header.sn_type == SCTP_ASSOC_CHANGE && n->sn_assoc_change.sac_state != SCTP_COMM_UP &&
	    n->sn_assoc_change.sac_state != SCTP_RESTART)
		sctp->ended = true;
	/* the peer has begun anew, with the first message */
	if (n->sn_header.sn_type == SCTP_ASSOC_CHANGE && n->sn_assoc_change.sac_state == SCTP_RESTART)
		account_restart(&flow->account);
	/* the association vanishes without another word when the peer's SHUTDOWN COMPLETE comes */
	if (n->sn_header.sn_type == SCTP_SHUTDOWN_EVENT)
		read_stats(flow, sctp);
	if (n->sn_header.sn_type == SCTP_PARTIAL_DELIVERY_EVENT)
		account_abandon(&flow->account, (uint16_t)n->sn_pdapi_event.pdapi_stream);
}

/* One element of what recvmmsg() gave. */
static int take(struct flow *flow, struct sctp *sctp, unsigned int slot)
{
	const struct msghdr *message = &sctp->in.messages[slot].msg_hdr;
	const void *data = sctp->in.vectors[slot].iov_base;
	size_t len = sctp->in.messages[slot].msg_len;
	bool end = message->msg_flags & MSG_EOR;
	const struct sctp_rcvinfo *info;
	struct account_fault fault;

	if (message->msg_flags & MSG_NOTIFICATION) {
		if (!sctp->in_notification)
			notified(flow, sctp, data, len);
		sctp->in_notification = !end;
		return 0;
	}
	if (!flow_receives(flow))
		return flow_error(flow, "recvmmsg", EPROTO, FLOW_UNEXPECTED);
	info = sctp_batch_rcvinfo(&sctp->in, slot);
	if (!info)
		return flow_error(flow, "recvmmsg", EPROTO, "a message without its stream number");
	if (flow_recognise(flow, data, len, info->rcv_sid, pattern_number(data, len, 0)))
		return -1;
	return flow_received(flow, account_message(&flow->account, info->rcv_sid, data, len, end, &fault),
			     &fault);
}

/* The meaning of an empty queue for the flow. */
static enum flow_io ended(struct flow *flow, const struct sctp *sctp)
{
	if (sctp->error)
		return lost(flow, "recvmmsg", sctp->error);
	return sctp->ended ? FLOW_CLOSED : FLOW_WAIT;
}

/* The kernel's time of a message is its first packet's: longer ones are read as they become complete. */
static bool may_block(const struct flow *flow, const struct sctp *sctp)
{
	bool small = flow->account.largest_message_bytes <= ONE_PACKET_BYTES;

	return flow->bulk && small && !sctp->ended && !sctp->error;
}

static enum flow_io assoc_recv(struct flow *flow)
{
	struct sctp *sctp = flow->state;
	bool blocking = may_block(flow, sctp);
	int64_t offset = 0;
	int n, i;

	/* a sender that waits for the end: the counters vanish with the association */
	if (sctp->shut)
		read_stats(flow, sctp);
	n = sctp_batch_recv(&sctp->in, flow, blocking);
	if (n < 0 && errno == EINTR)
		return flow_interrupted();
	if (n < 0 && errno != EAGAIN && !sctp->error) {
		/* recvmmsg() reports the socket's error before what is queued (do_recvmmsg): once, then it
		 * reads on */
		sctp->error = errno;
		return FLOW_MORE;
	}
	if (n < 0)
		return ended(flow, sctp);
	if (blocking)
		offset = clock_monotonic_offset_ns();
	else
		flow->read_ns = clock_monotonic_ns();
	for (i = 0; i < n; i++) {
		if (blocking)
			bulk_arrived(flow, &sctp->in.messages[i].msg_hdr, offset);
		if (sctp->in.messages[i].msg_len == 0) {
			sctp->ended = true;
			return ended(flow, sctp);
		}
		if (take(flow, sctp, (unsigned int)i))
			return FLOW_FAILED;
	}
	if ((unsigned int)n == sctp->in.slots || sctp->ended || sctp->error)
		return FLOW_MORE;
	return flow_after_short_read(flow);
}

static bool assoc_progress(struct flow *flow, uint64_t *acknowledged)
{
	struct sctp_status status = {0};
	socklen_t len = sizeof(status);

	if (getsockopt(flow->fd, SOL_SCTP, SCTP_STATUS, &status, &len))
		return false;
	/* moves when the kernel takes a message (it has room again) and when a chunk is acknowledged */
	*acknowledged = flow->sent_bytes - status.sstat_unackdata - status.sstat_penddata;
	return true;
}

/* As the INIT listed them, or ASCONF has by now. */
static bool assoc_admits(struct flow *flow)
{
	struct sockaddr *list;
	int count = sctp_getpaddrs(flow->fd, 0, &list);
	bool known;

	if (count <= 0)
		return false;
	known = address_list_holds(&flow->config->peer, list, count);
	sctp_freepaddrs(list);
	return known;
}

static void assoc_addresses(struct flow *flow)
{
	struct sockaddr *list;
	int count = sctp_getladdrs(flow->fd, 0, &list);

	if (count > 0) {
		address_write_packed(&flow->out, "local", list, count);
		sctp_freeladdrs(list);
	}
	count = sctp_getpaddrs(flow->fd, 0, &list);
	if (count > 0) {
		address_write_packed(&flow->out, "peer", list, count);
		sctp_freepaddrs(list);
	}
}

static void assoc_sample(struct flow *flow)
{
	struct sctp *sctp = flow->state;

	/* a notification that waits to be read may be of an address that came or went */
	if (flow->config->bare || flow->waiter.events & EPOLLIN)
		sctp_peers_forget(&sctp->peers);
	sctp_log_association(&flow->out, flow->fd, sctp->jiffy_ns, &sctp->peers);
}

static void assoc_in_force(struct flow *flow)
{
	struct sctp *sctp = flow->state;
	int value;

	flow_write_buffers(flow, flow->fd);
	if (flow_get(flow->fd, SOL_SCTP, SCTP_NODELAY, &value) == 0)
		ndjson_bool(&flow->out, "nodelay", value);
	ndjson_int(&flow->out, "jiffy_ns", sctp->jiffy_ns);
	sctp_options_write(flow);
	assoc_sample(flow);
}

static void assoc_counters(struct flow *flow)
{
	struct sctp *sctp = flow->state;

	read_stats(flow, sctp);
	if (sctp->have_stats)
		sctp_log_stats(&flow->out, &sctp->stats);
	else
		ndjson_null(&flow->out, "sctp_stats");
	assoc_sample(flow);
}

static int assoc_shutdown(struct flow *flow)
{
	struct linger linger = {.l_onoff = 1, .l_linger = BARE_LINGER_S};
	struct sctp *sctp = flow->state;

	if (flow->config->bare) {
		/* without notifications the end of the association is seen by close() alone, which waits for
		 * it */
		if (setsockopt(flow->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)))
			return flow_error(flow, "SO_LINGER", errno, NULL);
		sctp->ended = true;
		return 0;
	}
	if (shutdown(flow->fd, SHUT_WR))
		return flow_error(flow, "shutdown", errno, NULL);
	sctp->shut = true;
	return 0;
}

static void assoc_close(struct flow *flow, bool abort)
{
	struct sctp *sctp = flow->state;

	flow_close(flow, abort);
	if (sctp) {
		sctp_batch_close(&sctp->in);
		sctp_batch_close(&sctp->out);
		sctp_peers_forget(&sctp->peers);
	}
	free(sctp);
	flow->state = NULL;
}

const struct transport_ops sctp_ops = {
    .name = "sctp",
    .reads_in_bulk = true,
    .open = assoc_open,
    .listen = flow_listen,
    .accept = assoc_accept,
    .connect = assoc_connect,
    .connected = assoc_connected,
    .send = assoc_send,
    .recv = assoc_recv,
    .progress = assoc_progress,
    .sample = assoc_sample,
    .admits = assoc_admits,
    .addresses = assoc_addresses,
    .in_force = assoc_in_force,
    .counters = assoc_counters,
    .set_primary = assoc_set_primary,
    .heartbeat = assoc_heartbeat,
    .shutdown = assoc_shutdown,
    .close = assoc_close,
};
