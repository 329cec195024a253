"""Analyses TCP connections: round trips, causes of retransmissions, windows, bytes in flight.

`analyze_tcp(capture, flow)` gives a TcpConnection with .totals, .series and .events. Definitions: docs/metrics.md, TCP.
"""

from __future__ import annotations

from .connection import TcpConnection, analyze_tcp
from .retransmission import RetransmissionCause

__all__ = ["RetransmissionCause", "TcpConnection", "analyze_tcp"]
