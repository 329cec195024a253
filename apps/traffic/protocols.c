// SPDX-License-Identifier: Apache-2.0
/* Documented in protocols.h. */
#include "protocols.h"

const struct transport_ops *transport_of(const struct config *config)
{
	switch (config_protocol(config)) {
	case PROTOCOL_TCP:
		return &tcp_ops;
	case PROTOCOL_MPTCP:
		return &mptcp_ops;
	case PROTOCOL_UDP:
		return &udp_ops;
	default:
		return &sctp_ops;
	}
}
