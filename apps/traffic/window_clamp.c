// SPDX-License-Identifier: Apache-2.0
/* Documented in window_clamp.h. */
#include "window_clamp.h"

#include "clock.h"
#include "transport.h"

#include <errno.h>
#include <linux/tcp.h>
#include <stdio.h>
#include <string.h>

#ifndef SO_BUF_LOCK
#define SO_BUF_LOCK 72
#endif

/*
 * The receive buffer in multiples of the clamp. The kernel counts the memory that a packet occupies: 2304
 * bytes for 1460 bytes of payload (offloads off), so a full window occupies 1.6 times its bytes. There has to
 * be room for two (one waits for a gap to be filled, one waits to be read): 3.2, rounded up to 4.
 */
#define BUFFER_FACTOR 4

static int set_buffer(struct flow *flow, int fd, int64_t sk_rcvbuf)
{
	/* the kernel doubles what SO_RCVBUF asks for (socket(7)) */
	return flow_buffer(flow, fd, SO_RCVBUF, SO_RCVBUFFORCE, sk_rcvbuf / 2,
			   "SO_RCVBUF for --window-clamp-bytes");
}

int window_clamp_listen(struct window_clamp *clamp, struct flow *flow, int fd)
{
	clamp->bytes = (int)flow->config->window_clamp_bytes;
	if (set_buffer(flow, fd, clamp->bytes))
		return -1;
	if (flow_set(flow, fd, SOL_SOCKET, SO_BUF_LOCK, 0, "SO_BUF_LOCK for --window-clamp-bytes"))
		return -1;
	/* at least 64 KiB, so that window scaling is on (a scale of 1): without it Linux rounds windows to
	 * whole segments */
	return flow_set(flow, fd, IPPROTO_TCP, TCP_WINDOW_CLAMP, clamp->bytes < 65536 ? 65536 : clamp->bytes,
			"TCP_WINDOW_CLAMP");
}

static int get_info(struct flow *flow, struct tcp_info *info)
{
	socklen_t len = sizeof(*info);

	memset(info, 0, sizeof(*info));
	if (getsockopt(flow->fd, IPPROTO_TCP, TCP_INFO, info, &len))
		return flow_error(flow, "TCP_INFO", errno, NULL);
	return 0;
}

int window_clamp_accepted(struct window_clamp *clamp, struct flow *flow)
{
	struct tcp_info info;
	char detail[120];

	/* lock the buffer, so that it does not grow by itself */
	if (set_buffer(flow, flow->fd, clamp->bytes) || get_info(flow, &info))
		return -1;
	if (info.tcpi_rcv_wscale > 0 && clamp->bytes <= 65535 << info.tcpi_rcv_wscale &&
	    clamp->bytes % (1 << info.tcpi_rcv_wscale) == 0)
		return 0;
	snprintf(detail, sizeof(detail),
		 "window scale %d cannot express %d bytes; is net.ipv4.tcp_window_scaling off?",
		 info.tcpi_rcv_wscale, clamp->bytes);
	return flow_error(flow, "TCP_WINDOW_CLAMP", EINVAL, detail);
}

static void report(struct window_clamp *clamp, struct flow *flow, const char *record, int found)
{
	ndjson_begin(&flow->out, record);
	ndjson_int(&flow->out, "t_ns", clock_monotonic_ns());
	ndjson_int(&flow->out, "window_clamp_bytes", clamp->bytes);
	ndjson_int(&flow->out, "found_bytes", found);
	ndjson_end(&flow->out);
}

/* The size of a full segment once one has been seen, else 0; -1 after flow_error(). */
static int full_segment(struct flow *flow)
{
	struct tcp_info info;
	uint32_t full;

	if (get_info(flow, &info))
		return -1;
	/* tcpi_snd_mss: the segment size that the peer's MSS option, the path's MTU and the TCP options leave
	 */
	full = info.tcpi_advmss < info.tcpi_snd_mss ? info.tcpi_advmss : info.tcpi_snd_mss;
	return info.tcpi_rcv_mss >= full ? (int)info.tcpi_rcv_mss : 0;
}

static int widen(struct window_clamp *clamp, struct flow *flow)
{
	int found;

	if (set_buffer(flow, flow->fd, (int64_t)BUFFER_FACTOR * clamp->bytes) ||
	    flow_set(flow, flow->fd, IPPROTO_TCP, TCP_WINDOW_CLAMP, clamp->bytes, "TCP_WINDOW_CLAMP"))
		return -1;
	if (flow_get(flow->fd, IPPROTO_TCP, TCP_WINDOW_CLAMP, &found))
		return flow_error(flow, "TCP_WINDOW_CLAMP", errno, NULL);
	report(clamp, flow, "window_clamp", found);
	return 0;
}

int window_clamp_received(struct window_clamp *clamp, struct flow *flow, size_t bytes)
{
	int found;

	if (clamp->segment == 0) {
		clamp->segment = full_segment(flow);
		if (clamp->segment <= 0)
			return clamp->segment;
		return widen(clamp, flow);
	}
	if (bytes % (size_t)clamp->segment == 0)
		return 0;
	if (flow_get(flow->fd, IPPROTO_TCP, TCP_WINDOW_CLAMP, &found))
		return flow_error(flow, "TCP_WINDOW_CLAMP", errno, NULL);
	if (found == clamp->bytes)
		return 0;
	report(clamp, flow, "window_clamp_lost", found);
	flow->status = 1;
	return flow_set(flow, flow->fd, IPPROTO_TCP, TCP_WINDOW_CLAMP, clamp->bytes, "TCP_WINDOW_CLAMP");
}

void window_clamp_finish(struct window_clamp *clamp, struct flow *flow)
{
	int found;

	if (clamp->segment <= 0 || flow_get(flow->fd, IPPROTO_TCP, TCP_WINDOW_CLAMP, &found)) {
		ndjson_null(&flow->out, "window_clamp_bytes");
		return;
	}
	ndjson_int(&flow->out, "window_clamp_bytes", found);
	if (found != clamp->bytes)
		flow->status = 1;
}
