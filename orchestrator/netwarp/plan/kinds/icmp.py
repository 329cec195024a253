"""ICMP, which programs alone speak."""

from __future__ import annotations

from .kind import FlowKind

KIND = FlowKind(least_mtu_bytes=68, header_bytes=8, has_ports=False, only_programs=True)
