"""Analyses Multipath TCP (RFC 8684): the data stream that several subflows carry. Definitions: docs/metrics.md,
"MPTCP".
"""

from __future__ import annotations

from ..capture import Capture
from .connection import MptcpConnection, make_connection
from .data_level import DATA_ACK, MAPPED, DataLevel, data_level, numbered
from .subflows import subflow_groups

__all__ = ["DATA_ACK", "MAPPED", "DataLevel", "MptcpConnection", "analyze_mptcp", "data_level", "numbered"]


def analyze_mptcp(
    capture: Capture, *, direction: int | None = None, t0_ns: int | None = None
) -> tuple[MptcpConnection, ...]:
    """Every MPTCP connection of a capture point, in the order of their first packets. The capture needs all row tables.

    direction: of the data to analyse (0: from the end that opened the connection); by default the one with more new
    data. t0_ns: the origin of times (default: the capture's first packet). A TCP connection that offered MPTCP and fell
    back has one subflow and no mapped bytes.
    """
    start = capture.first_ns if t0_ns is None else t0_ns
    return tuple(make_connection(capture, group, direction, start) for group in subflow_groups(capture))
