/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_info: the kernel's TCP_INFO and MPTCP_INFO as JSON members, units in the names. */
#ifndef NETWARP_TCP_INFO_H
#define NETWARP_TCP_INFO_H

#include "ndjson.h"

#include <linux/tcp.h>
#include <stddef.h>

struct mptcp_info;
struct sockaddr;

/*
 * A path object: address (the peer's, given), cwnd_bytes, ssthresh_bytes, srtt_ns, rttvar_ns, rto_ns,
 * mtu_bytes and tcp_info with every field the kernel filled (`len` bytes).
 */
void tcp_info_write_path(struct ndjson *out, const struct sockaddr *peer, const struct tcp_info *info,
			 size_t len);
/* The object `tcp_info`. */
void tcp_info_write(struct ndjson *out, const struct tcp_info *info, size_t len);
/* The object `mptcp_info`. */
void tcp_info_write_mptcp(struct ndjson *out, const struct mptcp_info *info);

#endif
