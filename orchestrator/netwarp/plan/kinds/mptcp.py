"""MPTCP, one connection of several subflows a flow."""

from __future__ import annotations

from .kind import FlowKind
from .tcp import HEADER_BYTES, WINDOW, buffers

KIND = FlowKind(
    least_mtu_bytes=576,  # smaller ones were not tried
    header_bytes=HEADER_BYTES,
    several_paths=True,
    programs=False,
    paths_add_up=True,
    sysctls=buffers,
    window=WINDOW,
)
