/* SPDX-License-Identifier: Apache-2.0 */
/* sctp_log: an SCTP association's notifications, paths and counters as the kernel has them, by name. */
#ifndef NETWARP_SCTP_LOG_H
#define NETWARP_SCTP_LOG_H

#include "ndjson.h"

#include "sctp_api.h"
#include <stddef.h>
#include <stdint.h>

/*
 * A `notification` record: type, and by type address, state, error, streams. `len` bytes of it are there (a
 * long one comes in pieces, the first holds all that is recorded here). Names as in RFC 6458 section 6.1
 * without SCTP_.
 */
void sctp_log_notification(struct ndjson *out, int64_t t_ns, const void *notification, size_t len);

/* The member `paths`, a path object for each peer address: state, cwnd_bytes, srtt_ns, rto_ns, mtu_bytes. */
void sctp_log_paths(struct ndjson *out, int fd, int64_t jiffy_ns);
/* The object `association`: SCTP_STATUS. */
void sctp_log_status(struct ndjson *out, int fd);
/* The object `sctp_stats`: SCTP_GET_ASSOC_STATS. */
void sctp_log_stats(struct ndjson *out, const struct sctp_assoc_stats *stats);

#endif
