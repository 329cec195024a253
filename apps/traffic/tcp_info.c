// SPDX-License-Identifier: Apache-2.0
/* Documented in tcp_info.h. */
#include "tcp_info.h"

#include "address.h"

#include <linux/inet_diag.h>
#include <linux/mptcp.h>
#include <linux/version.h>
#include <string.h>

#define NS_PER_US 1000

struct field {
	const char *name;
	size_t offset, size;
};

#define FIELD(name, member)                                                                                  \
	{                                                                                                    \
		name, offsetof(struct tcp_info, tcpi_##member),                                              \
		    sizeof(((struct tcp_info *)NULL)->tcpi_##member)                                         \
	}

/* Names as in the kernel's struct, with the unit the kernel uses (net/ipv4/tcp.c:tcp_get_info). */
static const struct field fields[] = {
    FIELD("state", state),
    FIELD("ca_state", ca_state),
    FIELD("retransmits", retransmits),
    FIELD("probes", probes),
    FIELD("backoff", backoff),
    FIELD("options", options),
    FIELD("rto_us", rto),
    FIELD("ato_us", ato),
    FIELD("snd_mss_bytes", snd_mss),
    FIELD("rcv_mss_bytes", rcv_mss),
    FIELD("unacked_packets", unacked),
    FIELD("sacked_packets", sacked),
    FIELD("lost_packets", lost),
    FIELD("retrans_packets", retrans),
    FIELD("pmtu_bytes", pmtu),
    FIELD("rcv_ssthresh_bytes", rcv_ssthresh),
    FIELD("rtt_us", rtt),
    FIELD("rttvar_us", rttvar),
    FIELD("snd_ssthresh_packets", snd_ssthresh),
    FIELD("snd_cwnd_packets", snd_cwnd),
    FIELD("advmss_bytes", advmss),
    FIELD("reordering_packets", reordering),
    FIELD("rcv_rtt_us", rcv_rtt),
    FIELD("rcv_space_bytes", rcv_space),
    FIELD("total_retrans_packets", total_retrans),
    FIELD("pacing_rate_byte_s", pacing_rate),
    FIELD("max_pacing_rate_byte_s", max_pacing_rate),
    FIELD("bytes_acked", bytes_acked),
    FIELD("bytes_received", bytes_received),
    FIELD("segs_out", segs_out),
    FIELD("segs_in", segs_in),
    FIELD("notsent_bytes", notsent_bytes),
    FIELD("min_rtt_us", min_rtt),
    FIELD("data_segs_in", data_segs_in),
    FIELD("data_segs_out", data_segs_out),
    FIELD("delivery_rate_byte_s", delivery_rate),
    FIELD("busy_time_us", busy_time),
    FIELD("rwnd_limited_us", rwnd_limited),
    FIELD("sndbuf_limited_us", sndbuf_limited),
    FIELD("delivered_packets", delivered),
    FIELD("delivered_ce_packets", delivered_ce),
    FIELD("bytes_sent", bytes_sent),
    FIELD("bytes_retrans", bytes_retrans),
    FIELD("dsack_dups", dsack_dups),
    FIELD("reord_seen", reord_seen),
    FIELD("rcv_ooopack", rcv_ooopack),
    FIELD("snd_wnd_bytes", snd_wnd),
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 2, 0)
    FIELD("rcv_wnd_bytes", rcv_wnd),
    FIELD("rehash", rehash),
#endif
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 7, 0)
    FIELD("total_rto", total_rto),
    FIELD("total_rto_recoveries", total_rto_recoveries),
    FIELD("total_rto_time_ms", total_rto_time),
#endif
};

static uint64_t value_of(const struct tcp_info *info, const struct field *field)
{
	uint64_t value = 0;

	/* little endian only, as is all of netwarp (x86-64) */
	memcpy(&value, (const char *)info + field->offset, field->size);
	return value;
}

void tcp_info_write(struct ndjson *out, const struct tcp_info *info, size_t len)
{
	size_t i;

	ndjson_object_begin(out, "tcp_info");
	for (i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (fields[i].offset + fields[i].size <= len)
			ndjson_uint(out, fields[i].name, value_of(info, &fields[i]));
	ndjson_uint(out, "snd_wscale", info->tcpi_snd_wscale);
	ndjson_uint(out, "rcv_wscale", info->tcpi_rcv_wscale);
	ndjson_object_end(out);
}

void tcp_info_write_path(struct ndjson *out, const struct sockaddr *peer, const struct tcp_info *info,
			 size_t len, const struct tcp_bbr_info *bbr)
{
	ndjson_object_begin(out, NULL);
	address_write(out, "address", peer);
	ndjson_uint(out, "cwnd_bytes", (uint64_t)info->tcpi_snd_cwnd * info->tcpi_snd_mss);
	/* TCP_INFINITE_SSTHRESH: no threshold yet */
	if (info->tcpi_snd_ssthresh >= 0x7fffffff)
		ndjson_null(out, "ssthresh_bytes");
	else
		ndjson_uint(out, "ssthresh_bytes", (uint64_t)info->tcpi_snd_ssthresh * info->tcpi_snd_mss);
	ndjson_uint(out, "srtt_ns", (uint64_t)info->tcpi_rtt * NS_PER_US);
	ndjson_uint(out, "rttvar_ns", (uint64_t)info->tcpi_rttvar * NS_PER_US);
	ndjson_uint(out, "rto_ns", (uint64_t)info->tcpi_rto * NS_PER_US);
	ndjson_uint(out, "mtu_bytes", info->tcpi_pmtu);
	tcp_info_write(out, info, len);
	if (bbr) {
		ndjson_object_begin(out, "bbr_info");
		ndjson_uint(out, "bw_byte_s", (uint64_t)bbr->bbr_bw_hi << 32 | bbr->bbr_bw_lo);
		ndjson_uint(out, "min_rtt_us", bbr->bbr_min_rtt);
		ndjson_uint(out, "pacing_gain", bbr->bbr_pacing_gain);
		ndjson_uint(out, "cwnd_gain", bbr->bbr_cwnd_gain);
		ndjson_object_end(out);
	}
	ndjson_object_end(out);
}

#ifdef MPTCP_FULL_INFO
void tcp_info_write_mptcp(struct ndjson *out, const struct mptcp_info *info)
{
	ndjson_object_begin(out, "mptcp_info");
	ndjson_uint(out, "flags", info->mptcpi_flags);
	ndjson_bool(out, "fallback_to_tcp", info->mptcpi_flags & MPTCP_INFO_FLAG_FALLBACK);
	ndjson_uint(out, "extra_subflows", info->mptcpi_subflows);
	ndjson_uint(out, "subflows", info->mptcpi_subflows_total);
	ndjson_uint(out, "write_seq", info->mptcpi_write_seq);
	ndjson_uint(out, "snd_una", info->mptcpi_snd_una);
	ndjson_uint(out, "rcv_nxt", info->mptcpi_rcv_nxt);
	ndjson_uint(out, "retransmits", info->mptcpi_retransmits);
	ndjson_uint(out, "bytes_retrans", info->mptcpi_bytes_retrans);
	ndjson_uint(out, "bytes_sent", info->mptcpi_bytes_sent);
	ndjson_uint(out, "bytes_received", info->mptcpi_bytes_received);
	ndjson_uint(out, "bytes_acked", info->mptcpi_bytes_acked);
	ndjson_object_end(out);
}
#endif
