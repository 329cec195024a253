"""UDP: a message is a datagram."""

from __future__ import annotations

from .kind import FlowKind, Options

HEADER_BYTES = 8
"""RFC 768."""


def _largest_message(room_bytes: int, options: Options) -> int:
    return room_bytes - HEADER_BYTES


KIND = FlowKind(
    least_mtu_bytes=68, header_bytes=HEADER_BYTES, largest_message=_largest_message, connected=False
)  # IPv4's own least
