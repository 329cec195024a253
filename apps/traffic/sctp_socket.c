// SPDX-License-Identifier: Apache-2.0
/* Documented in sctp_socket.h. */
#include "sctp_socket.h"

#include "sctp_api.h"
#include "sctp_options.h"
#include "transport.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* net/sctp/constants.h, not among the user headers */
#define PF_EXPOSE_ENABLE 2

/* Each becomes a record of the flow's NDJSON: changes of the association and of paths explain failover; the
 * rest are not expected, and a record shows that they came. */
static int set_events(struct flow *flow, int fd)
{
	static const uint16_t types[] = {
	    SCTP_ASSOC_CHANGE,	       SCTP_PEER_ADDR_CHANGE,	    SCTP_REMOTE_ERROR,
	    SCTP_SHUTDOWN_EVENT,       SCTP_PARTIAL_DELIVERY_EVENT, SCTP_ADAPTATION_INDICATION,
	    SCTP_AUTHENTICATION_EVENT, SCTP_SENDER_DRY_EVENT,	    SCTP_STREAM_RESET_EVENT,
	    SCTP_ASSOC_RESET_EVENT,    SCTP_STREAM_CHANGE_EVENT,    SCTP_SEND_FAILED_EVENT,
	};
	struct sctp_event event = {.se_assoc_id = SCTP_FUTURE_ASSOC, .se_on = 1};
	size_t i;

	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		event.se_type = types[i];
		if (setsockopt(fd, SOL_SCTP, SCTP_EVENT, &event, sizeof(event)))
			return flow_error(flow, "SCTP_EVENT", errno, NULL);
	}
	return 0;
}

/* Asks for POTENTIALLY_FAILED states whatever net.sctp.pf_expose is. The option has no other effect. */
static int expose_states(struct flow *flow, int fd)
{
	struct sctp_assoc_value expose = {.assoc_id = SCTP_FUTURE_ASSOC, .assoc_value = PF_EXPOSE_ENABLE};

	/* kernels before 5.5 lack this option and always show that state in SCTP_GET_PEER_ADDR_INFO */
	if (setsockopt(fd, SOL_SCTP, SCTP_EXPOSE_POTENTIALLY_FAILED_STATE, &expose, sizeof(expose)) &&
	    errno != ENOPROTOOPT)
		return flow_error(flow, "SCTP_EXPOSE_POTENTIALLY_FAILED_STATE", errno, NULL);
	return 0;
}

static int set_options(struct flow *flow, int fd)
{
	if (sctp_options_set(flow, fd))
		return -1;
	if (flow->config->bare)
		return 0;
	if (expose_states(flow, fd))
		return -1;
	if (flow_set(flow, fd, SOL_SCTP, SCTP_RECVRCVINFO, 1, "SCTP_RECVRCVINFO"))
		return -1;
	return set_events(flow, fd);
}

static int bind_all(struct flow *flow, int fd, int family, uint16_t port)
{
	union address packed[ADDRESS_LIST_MAX];
	struct address_list list = flow->config->bind;

	if (list.count == 0 && port == 0)
		return 0;
	if (list.count == 0) {
		list.count = 1;
		memset(&list.items[0], 0, sizeof(list.items[0]));
		list.items[0].any.sa_family = (sa_family_t)family;
	}
	address_pack(&list, port, packed);
	if (list.count == 1) {
		if (bind(fd, &packed[0].any, address_length(&packed[0].any)))
			return flow_error(flow, "bind", errno, NULL);
		return 0;
	}
	if (sctp_bindx(fd, &packed[0].any, (int)list.count, SCTP_BINDX_ADD_ADDR))
		return flow_error(flow, "sctp_bindx", errno, NULL);
	return 0;
}

/* An IPv6 socket takes IPv4 addresses too; lists may be mixed. */
static int family_of(const struct config *config)
{
	return address_family(&config->bind) == AF_INET6 ? AF_INET6 : address_family(&config->to);
}

int sctp_socket_open(struct flow *flow)
{
	const struct config *config = flow->config;
	uint16_t port = flow_own_port(flow);
	int family = family_of(config);
	int fd = flow_socket(flow, family, SOCK_STREAM, IPPROTO_SCTP);

	if (fd < 0)
		return -1;
	if (set_options(flow, fd) == 0 && flow_reuse_port(flow, fd) == 0 &&
	    bind_all(flow, fd, family, port) == 0)
		return fd;
	close(fd);
	return -1;
}
