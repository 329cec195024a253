// SPDX-License-Identifier: Apache-2.0
/* Documented in sctp_log.h. */
#include "sctp_log.h"

#include "address.h"

#include <string.h>

#define NS_PER_MS    1000000
#define COUNT(names) (sizeof(names) / sizeof((names)[0]))

/* In the order of enum sctp_sn_type (linux/sctp.h), from SCTP_ASSOC_CHANGE on. */
static const char *const types[] = {
    "ASSOC_CHANGE",	 "PEER_ADDR_CHANGE",	   "SEND_FAILED",	    "REMOTE_ERROR",
    "SHUTDOWN_EVENT",	 "PARTIAL_DELIVERY_EVENT", "ADAPTATION_INDICATION", "AUTHENTICATION_EVENT",
    "SENDER_DRY_EVENT",	 "STREAM_RESET_EVENT",	   "ASSOC_RESET_EVENT",	    "STREAM_CHANGE_EVENT",
    "SEND_FAILED_EVENT",
};
static const char *const association_changes[] = {"COMM_UP", "COMM_LOST", "RESTART", "SHUTDOWN_COMP",
						  "CANT_STR_ASSOC"};
static const char *const address_changes[] = {"AVAILABLE", "UNREACHABLE", "REMOVED",	       "ADDED",
					      "MADE_PRIM", "CONFIRMED",	  "POTENTIALLY_FAILED"};
static const char *const key_changes[] = {"AUTH_NEW_KEY", "AUTH_FREE_KEY", "AUTH_NO_AUTH"};
static const char *const path_states[] = {"INACTIVE", "POTENTIALLY_FAILED", "ACTIVE", "UNCONFIRMED"};
static const char *const association_states[] = {"EMPTY",
						 "CLOSED",
						 "COOKIE_WAIT",
						 "COOKIE_ECHOED",
						 "ESTABLISHED",
						 "SHUTDOWN_PENDING",
						 "SHUTDOWN_SENT",
						 "SHUTDOWN_RECEIVED",
						 "SHUTDOWN_ACK_SENT"};

/* The name; a number this table does not know stays a number. */
static void write_name(struct ndjson *out, const char *key, const char *const *names, size_t count,
		       int64_t value)
{
	if (value >= 0 && (size_t)value < count)
		ndjson_str(out, key, names[value]);
	else
		ndjson_int(out, key, value);
}

static void write_association_change(struct ndjson *out, const struct sctp_assoc_change *change)
{
	write_name(out, "state", association_changes, COUNT(association_changes), change->sac_state);
	ndjson_uint(out, "error", change->sac_error);
	ndjson_uint(out, "outbound_streams", change->sac_outbound_streams);
	ndjson_uint(out, "inbound_streams", change->sac_inbound_streams);
}

static void write_address_change(struct ndjson *out, const struct sctp_paddr_change *change)
{
	union address address;

	/* packed in the kernel's struct */
	memcpy(&address, &change->spc_aaddr, sizeof(address));
	address_write(out, "address", &address.any);
	write_name(out, "state", address_changes, COUNT(address_changes), change->spc_state);
	ndjson_int(out, "error", change->spc_error);
}

/* The fields a type has beyond its name. `n` is whole as far as the kernel's struct goes. */
static void write_fields(struct ndjson *out, const union sctp_notification *n)
{
	switch (n->sn_header.sn_type) {
	case SCTP_ASSOC_CHANGE:
		write_association_change(out, &n->sn_assoc_change);
		break;
	case SCTP_PEER_ADDR_CHANGE:
		write_address_change(out, &n->sn_paddr_change);
		break;
	case SCTP_REMOTE_ERROR:
		ndjson_uint(out, "error", ntohs(n->sn_remote_error.sre_error));
		break;
	case SCTP_SEND_FAILED_EVENT:
		ndjson_uint(out, "error", n->sn_send_failed_event.ssf_error);
		ndjson_uint(out, "stream", n->sn_send_failed_event.ssfe_info.snd_sid);
		ndjson_str(out, "state", n->sn_header.sn_flags & SCTP_DATA_SENT ? "SENT" : "UNSENT");
		break;
	case SCTP_PARTIAL_DELIVERY_EVENT:
		ndjson_uint(out, "stream", n->sn_pdapi_event.pdapi_stream);
		break;
	case SCTP_AUTHENTICATION_EVENT:
		write_name(out, "state", key_changes, COUNT(key_changes),
			   n->sn_authkey_event.auth_indication);
		break;
	case SCTP_ADAPTATION_INDICATION:
		ndjson_uint(out, "indication", n->sn_adaptation_event.sai_adaptation_ind);
		break;
	default:
		break;
	}
}

void sctp_log_notification(struct ndjson *out, int64_t t_ns, const void *notification, size_t len)
{
	union sctp_notification n;

	memset(&n, 0, sizeof(n));
	memcpy(&n, notification, len < sizeof(n) ? len : sizeof(n));
	ndjson_begin(out, "notification");
	ndjson_int(out, "t_ns", t_ns);
	write_name(out, "type", types, COUNT(types), n.sn_header.sn_type - SCTP_ASSOC_CHANGE);
	ndjson_uint(out, "flags", n.sn_header.sn_flags);
	write_fields(out, &n);
	ndjson_end(out);
}

static void write_path(struct ndjson *out, const union address *address, const struct sctp_paddrinfo *info,
		       int64_t jiffy_ns)
{
	ndjson_object_begin(out, NULL);
	address_write(out, "address", &address->any);
	if (info) {
		write_name(out, "state", path_states, COUNT(path_states), info->spinfo_state);
		ndjson_uint(out, "cwnd_bytes", info->spinfo_cwnd);
		/* the kernel keeps it in jiffies and does not convert it (sctp_getsockopt_peer_addr_info) */
		ndjson_int(out, "srtt_ns", (int64_t)info->spinfo_srtt * jiffy_ns);
		ndjson_int(out, "rto_ns", (int64_t)info->spinfo_rto * NS_PER_MS);
		ndjson_uint(out, "mtu_bytes", info->spinfo_mtu);
	}
	ndjson_object_end(out);
}

/* Whether SCTP_STATUS says of this path what SCTP_GET_PEER_ADDR_INFO would. */
static bool is_primary(const struct sctp_status *status, const union address *address)
{
	union address primary;

	memcpy(&primary, &status->sstat_primary.spinfo_address, sizeof(primary));
	/* of a path that is potentially failed the other one says nothing where net.sctp.pf_expose forbids it
	 */
	return status->sstat_primary.spinfo_state == SCTP_ACTIVE &&
	       address_equal(&primary.any, &address->any);
}

static void write_paths(struct ndjson *out, int fd, int64_t jiffy_ns, const struct sctp_peers *peers,
			const struct sctp_status *status)
{
	const unsigned char *at = (const unsigned char *)peers->packed;
	struct sctp_paddrinfo info;
	union address address;
	socklen_t len;
	int i;

	ndjson_array_begin(out, "paths");
	for (i = 0; i < peers->count; i++) {
		memset(&address, 0, sizeof(address));
		memcpy(&address, at, sizeof(sa_family_t));
		memcpy(&address, at, address_length(&address.any));
		at += address_length(&address.any);
		if (status && is_primary(status, &address)) {
			info = status->sstat_primary;
			write_path(out, &address, &info, jiffy_ns);
			continue;
		}
		memset(&info, 0, sizeof(info));
		memcpy(&info.spinfo_address, &address, sizeof(address));
		len = sizeof(info);
		len = getsockopt(fd, SOL_SCTP, SCTP_GET_PEER_ADDR_INFO, &info, &len) ? 0 : len;
		write_path(out, &address, len ? &info : NULL, jiffy_ns);
	}
	ndjson_array_end(out);
}

static void write_status(struct ndjson *out, const struct sctp_status *status)
{
	union address primary;

	ndjson_object_begin(out, "association");
	write_name(out, "state", association_states, COUNT(association_states), status->sstat_state);
	ndjson_uint(out, "peer_rwnd_bytes", status->sstat_rwnd);
	ndjson_uint(out, "unacked_chunks", status->sstat_unackdata);
	ndjson_uint(out, "pending_chunks", status->sstat_penddata);
	ndjson_uint(out, "inbound_streams", status->sstat_instrms);
	ndjson_uint(out, "outbound_streams", status->sstat_outstrms);
	ndjson_uint(out, "fragmentation_point_bytes", status->sstat_fragmentation_point);
	memcpy(&primary, &status->sstat_primary.spinfo_address, sizeof(primary));
	address_write(out, "primary", &primary.any);
	ndjson_object_end(out);
}

void sctp_peers_forget(struct sctp_peers *peers)
{
	if (peers->packed)
		sctp_freepaddrs(peers->packed);
	peers->packed = NULL;
	peers->count = 0;
}

void sctp_log_association(struct ndjson *out, int fd, int64_t jiffy_ns, struct sctp_peers *peers)
{
	struct sctp_status status = {0};
	socklen_t len = sizeof(status);
	bool known = getsockopt(fd, SOL_SCTP, SCTP_STATUS, &status, &len) == 0;

	if (!known)
		sctp_peers_forget(peers);
	if (!peers->packed) {
		peers->count = sctp_getpaddrs(fd, 0, &peers->packed);
		if (peers->count <= 0)
			peers->packed = NULL;
	}
	write_paths(out, fd, jiffy_ns, peers, known ? &status : NULL);
	if (known)
		write_status(out, &status);
}

void sctp_log_stats(struct ndjson *out, const struct sctp_assoc_stats *stats)
{
	ndjson_object_begin(out, "sctp_stats");
	ndjson_uint(out, "max_rto_ms", stats->sas_maxrto);
	ndjson_uint(out, "packets_out", stats->sas_opackets);
	ndjson_uint(out, "packets_in", stats->sas_ipackets);
	ndjson_uint(out, "sacks_out", stats->sas_osacks);
	ndjson_uint(out, "sacks_in", stats->sas_isacks);
	ndjson_uint(out, "retransmitted_chunks", stats->sas_rtxchunks);
	ndjson_uint(out, "out_of_sequence_tsns_in", stats->sas_outofseqtsns);
	ndjson_uint(out, "duplicate_chunks_in", stats->sas_idupchunks);
	ndjson_uint(out, "gap_acks_in", stats->sas_gapcnt);
	ndjson_uint(out, "unordered_chunks_out", stats->sas_ouodchunks);
	ndjson_uint(out, "unordered_chunks_in", stats->sas_iuodchunks);
	ndjson_uint(out, "ordered_chunks_out", stats->sas_oodchunks);
	ndjson_uint(out, "ordered_chunks_in", stats->sas_iodchunks);
	ndjson_uint(out, "control_chunks_out", stats->sas_octrlchunks);
	ndjson_uint(out, "control_chunks_in", stats->sas_ictrlchunks);
	ndjson_object_end(out);
}
