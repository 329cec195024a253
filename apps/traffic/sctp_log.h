/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sctp_log: writes an SCTP association's notifications, paths and counters, as the kernel reports them, as
 * JSON (docs/formats.md).
 */
#ifndef NETWARP_SCTP_LOG_H
#define NETWARP_SCTP_LOG_H

#include "ndjson.h"

#include "sctp_api.h"
#include <stddef.h>
#include <stdint.h>

/*
 * Write a record `notification`: its type and, depending on the type, address, state, error and streams.
 * Names are those of RFC 6458 section 6.1 without SCTP_. `len`: bytes at `notification`; a long one arrives
 * in pieces, and the first piece holds all that is recorded.
 */
void sctp_log_notification(struct ndjson *out, int64_t t_ns, const void *notification, size_t len);

/* The peer's addresses as the kernel listed them; packed is NULL when they have to be read again. */
struct sctp_peers {
	struct sockaddr *packed;
	int count;
};

/* Read the addresses again the next time: one may have been added or removed. */
void sctp_peers_forget(struct sctp_peers *peers);

/*
 * Write the member `paths`: an object per peer address with state, cwnd_bytes, srtt_ns, rto_ns, mtu_bytes,
 * and the object `association`, from SCTP_STATUS. `jiffy_ns`: length of a kernel tick, in which the kernel
 * reports the SRTT. SCTP_STATUS says the same of the primary path as SCTP_GET_PEER_ADDR_INFO, so that each
 * of the other paths costs a system call, and the primary one none.
 */
void sctp_log_association(struct ndjson *out, int fd, int64_t jiffy_ns, struct sctp_peers *peers);
/* Write the object `sctp_stats`, from SCTP_GET_ASSOC_STATS. */
void sctp_log_stats(struct ndjson *out, const struct sctp_assoc_stats *stats);

#endif
