"""TCP, one connection a flow."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ...core.types import Flow
from .kind import FlowKind, Sysctls, Window

HEADER_BYTES = 20
"""Without options (RFC 9293 3.1)."""
BUFFERS = {"net.ipv4.tcp_rmem": "4096 131072 6291456", "net.ipv4.tcp_wmem": "4096 16384 4194304"}
"""Of a machine of today: 6 and 4 MiB at most, as Linux has them from 768 and 512 MiB of memory on (net/ipv4/tcp.c:
tcp_init); a guest has less memory, and a host any setting. The first two numbers are the kernel's own.
"""
DATA_SHARE = {"net.ipv4.tcp_rmem": 0.62, "net.ipv4.tcp_wmem": 0.68}
"""The data that a full buffer holds, in full packets; the rest is the kernel's own records. Measured with 6.12.117:
3,930,752 B announced of 6 MiB, 2,862,641 B in flight of 4 MiB.
"""


def buffers(flow: Flow, both_families: bool) -> Sysctls:
    """The buffers of a machine of today."""
    return BUFFERS


def _window_bytes(flow: Flow, sysctls: Mapping[str, Sysctls]) -> float | None:
    ends = (
        ("net.ipv4.tcp_rmem", flow.receiver, {"rcvbuf_bytes", "window_clamp_bytes"} & flow.receiver_options.keys()),
        ("net.ipv4.tcp_wmem", flow.sender, {"sndbuf_bytes"} & flow.sender_options.keys()),
    )
    return min(
        (
            int(value.split()[2]) * DATA_SHARE[name]
            for name, node, chosen in ends
            if not chosen and (value := sysctls[node].get(name)) == BUFFERS[name]
        ),
        default=None,
    )


def _larger(size_bytes: float) -> str:
    most = 1 << math.ceil(math.log2(size_bytes / DATA_SHARE["net.ipv4.tcp_rmem"]))
    return (
        f'[default.node] sysctl = {{ "net.ipv4.tcp_rmem" = "4096 131072 {most}",'
        f' "net.ipv4.tcp_wmem" = "4096 16384 {most}" }}'
    )


WINDOW = Window(_window_bytes, _larger, "the default buffers of its sockets hold", " of data")
KIND = FlowKind(
    least_mtu_bytes=88,  # no segment gets smaller than TCP_MIN_SND_MSS, 48 B (net/tcp.h)
    header_bytes=HEADER_BYTES,
    pages=True,
    relayed=True,
    sysctls=buffers,
    window=WINDOW,
)
