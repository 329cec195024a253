"""Kinds of flows in planning: a file for each protocol, and their table."""

from __future__ import annotations

from ...core.types import Protocol
from . import icmp, mptcp, quic, sctp, tcp, udp
from .kind import FlowKind

FLOW_KINDS: dict[Protocol, FlowKind] = {
    "tcp": tcp.KIND, "sctp": sctp.KIND, "udp": udp.KIND, "quic": quic.KIND, "icmp": icmp.KIND, "mptcp": mptcp.KIND,
}  # fmt: skip
