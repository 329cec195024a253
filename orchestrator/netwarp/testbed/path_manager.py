"""MPTCP's path manager: the endpoints that make a connection use all paths of its flow (generic netlink, mptcp_pm).

The sender connects over the flow's first path. Every other path is opened by the kernels: the receiver signals its
address there (ADD_ADDR, RFC 8684 3.4.1), and the sender joins it over the route that leads there. Where paths end in
one address of the receiver, the sender's own addresses are endpoints that open subflows.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Sequence

from ..core.ip_families import IPV4, IPV6, family_of
from ..core.types import Flow
from .layout import Layout
from .messages import CHANGE, Request
from .qdiscs import attribute

FAMILY = "mptcp_pm"
GENERIC = 16
"""Stands in for the family's number, which cell-init asks the kernel for."""
VERSION = 1
COMMAND_ADD_ADDRESS, COMMAND_SET_LIMITS = 1, 5
ATTRIBUTE_ADDRESS, ATTRIBUTE_ACCEPTED, ATTRIBUTE_SUBFLOWS = 1, 2, 3
ADDRESS_FAMILY, ADDRESS_FLAGS = 1, 6
ADDRESS_OF = {IPV4: 3, IPV6: 4}
SIGNAL, SUBFLOW = 1, 2
NESTED = 0x8000
MOST = 8
"""Subflows beside the first, and addresses taken: the kernel's limit."""


def path_manager(flows: Sequence[Flow], layout: Layout) -> list[tuple[int, Request]]:
    """(namespace, request) for every host with an MPTCP flow of several paths; nothing for others.

    Endpoints are a host's, not a flow's: other MPTCP flows between the same hosts use them, too.
    """
    several = [flow for flow in flows if flow.protocol == "mptcp" and len(flow.paths) > 1]
    more: dict[str, int] = {}
    endpoints: dict[tuple[str, str], int] = {}
    for flow in several:
        first = flow.paths[0]
        for host in (flow.sender, flow.receiver):
            more[host] = min(MOST, max(more.get(host, 0), len(flow.paths) - 1))
        for path in flow.paths[1:]:
            if path.receiver_link != first.receiver_link:
                endpoints.setdefault((flow.receiver, path.receiver_link), SIGNAL)
            else:
                endpoints.setdefault((flow.sender, path.sender_link), SUBFLOW)
    requests = [(layout.namespaces.index(host), limits(count)) for host, count in more.items()]
    for (host, link), flag in endpoints.items():
        interface = layout.interface(host, link)
        requests.append((interface.namespace, endpoint(interface.ip, flag)))
    return requests


def _request(command: int, attributes: bytes, text: str) -> Request:
    body = struct.pack("=BBH", command, VERSION, 0) + attributes
    return Request(struct.pack("=IHHII", 16 + len(body), GENERIC, CHANGE, 0, 0) + body, text)


def limits(subflows: int) -> Request:
    """Request: the largest number of subflows besides the first of a connection, and of announced addresses that it
    accepts.
    """
    attributes = attribute(ATTRIBUTE_ACCEPTED, struct.pack("=I", subflows))
    attributes += attribute(ATTRIBUTE_SUBFLOWS, struct.pack("=I", subflows))
    text = f"ip mptcp limits set subflow {subflows} add_addr_accepted {subflows}"
    return _request(COMMAND_SET_LIMITS, attributes, text)


def endpoint(ip: str, flag: int) -> Request:
    """Request: an address of this host to announce to the peer (SIGNAL) or to open subflows from (SUBFLOW)."""
    family = family_of(ip)
    address = attribute(ADDRESS_FAMILY, struct.pack("=H", family.number))
    address += attribute(ADDRESS_OF[family], ipaddress.ip_address(ip).packed)
    address += attribute(ADDRESS_FLAGS, struct.pack("=I", flag))
    text = f"ip mptcp endpoint add {ip} {'signal' if flag == SIGNAL else 'subflow'}"
    return _request(COMMAND_ADD_ADDRESS, attribute(ATTRIBUTE_ADDRESS | NESTED, address), text)
