// SPDX-License-Identifier: Apache-2.0
/* Names and meaning: RFC 6458 and, for the thresholds, RFC 7829; what 0 means to Linux: net/sctp/socket.c. */
#include "sctp_options.h"

#include "sctp_api.h"
#include "transport.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define NS_PER_MS INT64_C(1000000)
#define NONE	  OPTION_NOT_GIVEN

/* An option's value of a socket or its association, read from the kernel; NONE: it gave none. */
struct knobs {
	int64_t rto_initial_ns, rto_min_ns, rto_max_ns;
	int64_t path_max_retrans, association_max_retrans, pf_retrans, ps_retrans;
	int64_t heartbeat_interval_ns; /* NONE: no heartbeats */
	bool heartbeats;	       /* the kernel sends them */
	int64_t sack_delay_ns, sack_frequency;
	int64_t max_burst, path_mtu_bytes;
	int64_t init_attempts, init_max_timeout_ns;
	int64_t mss_bytes;
};

#define ROW(member)                                                                                          \
	{                                                                                                    \
#member, offsetof(struct knobs, member), offsetof(struct config, member)                     \
	}

static const struct row {
	const char *name;
	size_t kernel, config;
} rows[] = {
    ROW(rto_initial_ns),	  ROW(rto_min_ns),	    ROW(rto_max_ns), ROW(path_max_retrans),
    ROW(association_max_retrans), ROW(pf_retrans),	    ROW(ps_retrans), ROW(heartbeat_interval_ns),
    ROW(sack_delay_ns),		  ROW(sack_frequency),	    ROW(max_burst),  ROW(path_mtu_bytes),
    ROW(init_attempts),		  ROW(init_max_timeout_ns), ROW(mss_bytes),
};

static const char *const schedulers[] = {"fcfs", "prio", "rr", "fc", "wfq"};

static int64_t at(const void *values, size_t offset)
{
	int64_t value;

	memcpy(&value, (const char *)values + offset, sizeof(value));
	return value;
}

static int get(int fd, int option, void *value, size_t size)
{
	socklen_t len = (socklen_t)size;

	return getsockopt(fd, SOL_SCTP, option, value, &len);
}

/* listed: the program sends the heartbeats, and the interval is that of the timer by which the kernel still
 * gives up. */
static void read_path(int fd, struct knobs *knobs, bool listed)
{
	struct sctp_paddrparams path = {0};
	struct sctp_paddrthlds_v2 limits = {0};

	if (get(fd, SCTP_PEER_ADDR_PARAMS, &path, sizeof(path)) == 0) {
		knobs->heartbeats = path.spp_flags & SPP_HB_ENABLE;
		if (knobs->heartbeats || listed)
			knobs->heartbeat_interval_ns = (int64_t)path.spp_hbinterval * NS_PER_MS;
		knobs->path_mtu_bytes = (int64_t)path.spp_pathmtu;
	}
	if (get(fd, SCTP_PEER_ADDR_THLDS_V2, &limits, sizeof(limits)) == 0) {
		knobs->path_max_retrans = limits.spt_pathmaxrxt;
		knobs->pf_retrans = limits.spt_pathpfthld;
		knobs->ps_retrans = limits.spt_pathcpthld;
	}
}

static void read_association(int fd, struct knobs *knobs)
{
	struct sctp_rtoinfo rto = {0};
	struct sctp_assocparams association = {0};
	struct sctp_sack_info sack = {0};
	struct sctp_assoc_value value = {0};
	struct sctp_initmsg init = {0};

	if (get(fd, SCTP_RTOINFO, &rto, sizeof(rto)) == 0) {
		knobs->rto_initial_ns = (int64_t)rto.srto_initial * NS_PER_MS;
		knobs->rto_min_ns = (int64_t)rto.srto_min * NS_PER_MS;
		knobs->rto_max_ns = (int64_t)rto.srto_max * NS_PER_MS;
	}
	if (get(fd, SCTP_ASSOCINFO, &association, sizeof(association)) == 0)
		knobs->association_max_retrans = association.sasoc_asocmaxrxt;
	if (get(fd, SCTP_DELAYED_SACK, &sack, sizeof(sack)) == 0) {
		knobs->sack_delay_ns = (int64_t)sack.sack_delay * NS_PER_MS;
		knobs->sack_frequency = sack.sack_freq;
	}
	if (get(fd, SCTP_MAX_BURST, &value, sizeof(value)) == 0)
		knobs->max_burst = value.assoc_value;
	memset(&value, 0, sizeof(value));
	if (get(fd, SCTP_MAXSEG, &value, sizeof(value)) == 0)
		knobs->mss_bytes = value.assoc_value;
	if (get(fd, SCTP_INITMSG, &init, sizeof(init)) == 0) {
		knobs->init_attempts = init.sinit_max_attempts;
		knobs->init_max_timeout_ns = (int64_t)init.sinit_max_init_timeo * NS_PER_MS;
	}
}

static void read_all(const struct flow *flow, int fd, struct knobs *knobs)
{
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		memcpy((char *)knobs + rows[i].kernel, &(int64_t){NONE}, sizeof(int64_t));
	knobs->heartbeats = false;
	read_path(fd, knobs, flow->config->heartbeats);
	read_association(fd, knobs);
}

static int differs(struct flow *flow, const char *name, const char *asked, const char *got)
{
	char detail[200];

	snprintf(detail, sizeof(detail), "asked for %s, the kernel has %s", asked, got);
	return flow_error(flow, name, EINVAL, detail);
}

static int differs_number(struct flow *flow, const char *name, int64_t asked, int64_t got)
{
	char wanted[24], there[24];

	snprintf(wanted, sizeof(wanted), "%" PRId64, asked);
	snprintf(there, sizeof(there), "%" PRId64, got);
	return differs(flow, name, wanted, got == NONE ? "none" : there);
}

static int scheduler_of(int fd)
{
	struct sctp_assoc_value value = {0};

	return get(fd, SCTP_STREAM_SCHEDULER, &value, sizeof(value)) ? -1 : (int)value.assoc_value;
}

static const char *scheduler_name(int number)
{
	return number >= 0 && (size_t)number < sizeof(schedulers) / sizeof(schedulers[0]) ? schedulers[number]
											  : NULL;
}

static int check(struct flow *flow, int fd)
{
	const struct config *config = flow->config;
	const char *scheduler = scheduler_name(scheduler_of(fd));
	struct knobs knobs;
	int64_t asked, got;
	int value = 0;
	size_t i;

	read_all(flow, fd, &knobs);
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		asked = at(config, rows[i].config);
		got = at(&knobs, rows[i].kernel);
		if (asked != NONE && asked != got)
			return differs_number(flow, rows[i].name, asked, got);
	}
	if ((config->no_heartbeats || config->heartbeats) && knobs.heartbeats)
		return differs(flow, "no_heartbeats", "none", "heartbeats");
	if (config->scheduler && (!scheduler || strcmp(config->scheduler, scheduler) != 0))
		return differs(flow, "scheduler", config->scheduler, scheduler ? scheduler : "another");
	if (config->no_fragments && (flow_get(fd, SOL_SCTP, SCTP_DISABLE_FRAGMENTS, &value) || !value))
		return differs(flow, "no_fragments", "1", "0");
	if (config->nodelay && (flow_get(fd, SOL_SCTP, SCTP_NODELAY, &value) || !value))
		return differs(flow, "nodelay", "1", "0");
	return 0;
}

static int set(struct flow *flow, int fd, int option, const void *value, size_t size, const char *what)
{
	if (setsockopt(fd, SOL_SCTP, option, value, (socklen_t)size) == 0)
		return 0;
	return flow_error(flow, what, errno, NULL);
}

static uint32_t ms_or_0(int64_t ns)
{
	return ns == NONE ? 0 : (uint32_t)(ns / NS_PER_MS);
}

static uint32_t or_0(int64_t value)
{
	return value == NONE ? 0 : (uint32_t)value;
}

static bool given(int64_t value)
{
	return value != NONE;
}

/* 0 in a field: the kernel leaves it as it is. */
static int set_association(struct flow *flow, int fd)
{
	const struct config *config = flow->config;
	struct sctp_rtoinfo rto = {.srto_initial = ms_or_0(config->rto_initial_ns),
				   .srto_min = ms_or_0(config->rto_min_ns),
				   .srto_max = ms_or_0(config->rto_max_ns)};
	struct sctp_assocparams association = {.sasoc_asocmaxrxt =
						   (uint16_t)or_0(config->association_max_retrans)};
	struct sctp_sack_info sack = {.sack_delay = ms_or_0(config->sack_delay_ns),
				      .sack_freq = or_0(config->sack_frequency)};
	struct sctp_assoc_value burst = {.assoc_value = or_0(config->max_burst)};
	struct sctp_assoc_value segment = {.assoc_value = or_0(config->mss_bytes)};

	if ((rto.srto_initial || rto.srto_min || rto.srto_max) &&
	    set(flow, fd, SCTP_RTOINFO, &rto, sizeof(rto), "SCTP_RTOINFO"))
		return -1;
	if (association.sasoc_asocmaxrxt &&
	    set(flow, fd, SCTP_ASSOCINFO, &association, sizeof(association), "SCTP_ASSOCINFO"))
		return -1;
	if ((sack.sack_delay || sack.sack_freq) &&
	    set(flow, fd, SCTP_DELAYED_SACK, &sack, sizeof(sack), "SCTP_DELAYED_SACK"))
		return -1;
	if (given(config->max_burst) &&
	    set(flow, fd, SCTP_MAX_BURST, &burst, sizeof(burst), "SCTP_MAX_BURST"))
		return -1;
	if (given(config->mss_bytes) && set(flow, fd, SCTP_MAXSEG, &segment, sizeof(segment), "SCTP_MAXSEG"))
		return -1;
	return 0;
}

static int set_path(struct flow *flow, int fd)
{
	const struct config *config = flow->config;
	/* after the interval, which is set with the heartbeats on */
	struct sctp_paddrparams path = {0}, off = {.spp_flags = SPP_HB_DISABLE};
	struct sctp_paddrthlds_v2 limits = {0};

	if (given(config->heartbeat_interval_ns)) {
		path.spp_hbinterval = ms_or_0(config->heartbeat_interval_ns);
		path.spp_flags |= path.spp_hbinterval ? SPP_HB_ENABLE : SPP_HB_ENABLE | SPP_HB_TIME_IS_ZERO;
	}
	if (config->no_heartbeats)
		path.spp_flags |= SPP_HB_DISABLE;
	if (given(config->path_mtu_bytes)) {
		path.spp_pathmtu = or_0(config->path_mtu_bytes);
		path.spp_flags |= SPP_PMTUD_DISABLE;
	}
	if (path.spp_flags &&
	    set(flow, fd, SCTP_PEER_ADDR_PARAMS, &path, sizeof(path), "SCTP_PEER_ADDR_PARAMS"))
		return -1;
	if (config->heartbeats &&
	    set(flow, fd, SCTP_PEER_ADDR_PARAMS, &off, sizeof(off), "SCTP_PEER_ADDR_PARAMS"))
		return -1;
	if (!given(config->path_max_retrans) && !given(config->pf_retrans) && !given(config->ps_retrans))
		return 0;
	/* 0 is a value of two of its fields, so all three are set */
	if (get(fd, SCTP_PEER_ADDR_THLDS_V2, &limits, sizeof(limits)))
		return flow_error(flow, "SCTP_PEER_ADDR_THLDS_V2", errno, NULL);
	if (given(config->path_max_retrans))
		limits.spt_pathmaxrxt = (uint16_t)config->path_max_retrans;
	if (given(config->pf_retrans))
		limits.spt_pathpfthld = (uint16_t)config->pf_retrans;
	if (given(config->ps_retrans))
		limits.spt_pathcpthld = (uint16_t)config->ps_retrans;
	return set(flow, fd, SCTP_PEER_ADDR_THLDS_V2, &limits, sizeof(limits), "SCTP_PEER_ADDR_THLDS_V2");
}

static int set_socket(struct flow *flow, int fd)
{
	const struct config *config = flow->config;
	struct sctp_initmsg init = {0};
	struct sctp_assoc_value scheduler = {0};

	if (flow->role == ROLE_SENDER) {
		init.sinit_num_ostreams = (uint16_t)config->streams;
		init.sinit_max_attempts = (uint16_t)or_0(config->init_attempts);
		init.sinit_max_init_timeo = (uint16_t)ms_or_0(config->init_max_timeout_ns);
	} else {
		init.sinit_max_instreams = (uint16_t)config->streams;
		init.sinit_num_ostreams = (uint16_t)or_0(config->reverse_streams);
	}
	/* what a bare sender is to have of it, it has to ask for */
	if ((!config->bare || init.sinit_max_attempts || init.sinit_max_init_timeo) &&
	    set(flow, fd, SCTP_INITMSG, &init, sizeof(init), "SCTP_INITMSG"))
		return -1;
	if (config->nodelay && flow_set(flow, fd, SOL_SCTP, SCTP_NODELAY, 1, "SCTP_NODELAY"))
		return -1;
	if (config->no_fragments &&
	    flow_set(flow, fd, SOL_SCTP, SCTP_DISABLE_FRAGMENTS, 1, "SCTP_DISABLE_FRAGMENTS"))
		return -1;
	if (!config->scheduler)
		return 0;
	while (strcmp(config->scheduler, schedulers[scheduler.assoc_value]) != 0)
		scheduler.assoc_value++;
	return set(flow, fd, SCTP_STREAM_SCHEDULER, &scheduler, sizeof(scheduler), "SCTP_STREAM_SCHEDULER");
}

int sctp_options_set(struct flow *flow, int fd)
{
	if (set_association(flow, fd) || set_path(flow, fd) || set_socket(flow, fd))
		return -1;
	return check(flow, fd);
}

int sctp_options_connected(struct flow *flow)
{
	const struct number_list *values = &flow->config->stream_values;
	struct sctp_stream_value value;
	unsigned int i;

	for (i = 0; i < values->count; i++) {
		memset(&value, 0, sizeof(value));
		value.stream_id = (uint16_t)i;
		value.stream_value = (uint16_t)values->items[i];
		if (set(flow, flow->fd, SCTP_STREAM_SCHEDULER_VALUE, &value, sizeof(value),
			"SCTP_STREAM_SCHEDULER_VALUE"))
			return -1;
		if (get(flow->fd, SCTP_STREAM_SCHEDULER_VALUE, &value, sizeof(value)))
			return flow_error(flow, "SCTP_STREAM_SCHEDULER_VALUE", errno, NULL);
		if (value.stream_value != values->items[i])
			return differs_number(flow, "stream_values", values->items[i], value.stream_value);
	}
	return check(flow, flow->fd);
}

void sctp_options_write(struct flow *flow)
{
	struct sctp_assocparams association = {0};
	struct knobs knobs;
	int64_t value;
	size_t i;

	read_all(flow, flow->fd, &knobs);
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		value = at(&knobs, rows[i].kernel);
		if (value == NONE)
			ndjson_null(&flow->out, rows[i].name);
		else
			ndjson_int(&flow->out, rows[i].name, value);
	}
	ndjson_str(&flow->out, "scheduler", scheduler_name(scheduler_of(flow->fd)));
	if (get(flow->fd, SCTP_ASSOCINFO, &association, sizeof(association)) == 0) {
		ndjson_uint(&flow->out, "local_rwnd_bytes", association.sasoc_local_rwnd);
		ndjson_uint(&flow->out, "peer_rwnd_bytes", association.sasoc_peer_rwnd);
	}
}
