/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tcp_info: writes the kernel's TCP_INFO and MPTCP_INFO as JSON members. Their units are part of their
 * names.
 */
#ifndef NETWARP_TCP_INFO_H
#define NETWARP_TCP_INFO_H

#include "ndjson.h"

#include <linux/tcp.h>
#include <stddef.h>

struct mptcp_info;
struct sockaddr;
struct tcp_bbr_info;

/*
 * Write a path object: the peer's address, cwnd_bytes, ssthresh_bytes (null while the kernel has no
 * threshold), srtt_ns, rttvar_ns, rto_ns, mtu_bytes, tcp_info with every field that the kernel filled, and
 * bbr_info unless `bbr` is NULL. `len`: bytes that the kernel filled.
 */
void tcp_info_write_path(struct ndjson *out, const struct sockaddr *peer, const struct tcp_info *info,
			 size_t len, const struct tcp_bbr_info *bbr);
/* Write the object `tcp_info`. */
void tcp_info_write(struct ndjson *out, const struct tcp_info *info, size_t len);
/* Write the object `mptcp_info`. */
void tcp_info_write_mptcp(struct ndjson *out, const struct mptcp_info *info);

#endif
