"""Metrics of UDP and ICMP, from captures alone: packets and bytes by protocol and address pair."""

from __future__ import annotations

import numpy as np

from ...captures.native import Ints
from ...captures.time_spans import bytes_in, rate_bit_s
from ...core.types import Cell, Flow
from ...core.wire import IP_PROTOCOLS
from ...testbed.layout import make_layout
from ..capacity import capacity_bit_s
from ..capture_point import CapturePoint
from ..observation import Window


def datagrams_at(cell: Cell, flow: Flow, receiver: CapturePoint | None, t0_realtime_ns: int) -> tuple[Ints, Ints]:
    """(ns from T0, IP bytes) of every packet from the sender's address to the receiver's, at the receiver.

    Fragments count as packets. Empty where the receiver was not captured.
    """
    if receiver is None:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    path, layout = flow.paths[0], make_layout(cell)
    pair = (layout.interface(flow.sender, path.sender_link).ip, layout.interface(flow.receiver, path.receiver_link).ip)
    packets = receiver.capture.packets
    there = np.zeros(len(packets), dtype=np.bool_)
    for number, ends in enumerate(receiver.addresses):
        if set(ends) == set(pair):  # path direction 0 is from its first address
            there |= (packets["path"] == number) & (packets["path_direction"] == ends.index(pair[0]))
    rows = packets[(packets["protocol"] == IP_PROTOCOLS[flow.protocol]) & there]
    return rows["time_ns"].astype(np.int64) - t0_realtime_ns, rows["ip_bytes"].astype(np.int64)


def datagram_metrics(cell: Cell, flow: Flow, t_ns: Ints, ip_bytes: Ints, window: Window) -> dict[str, float | None]:
    """packets, wire_bytes, throughput_bit_s, utilization_ratio of what arrived in the window, completion_time_s."""
    ip_bytes, t_ns = ip_bytes[window.holds(t_ns)], t_ns[window.holds(t_ns)]
    metrics: dict[str, float | None] = {"packets": float(len(t_ns)), "wire_bytes": float(ip_bytes.sum())}
    if window.complete and window.end_ns is not None:
        metrics["completion_time_s"] = (window.end_ns - flow.start_ns) / 1e9
    if len(t_ns) and window.first_ns is not None and window.end_ns is not None and window.end_ns > window.first_ns:
        rate = rate_bit_s(bytes_in(t_ns, ip_bytes, int(t_ns[0]), window.end_ns), window.end_ns - window.first_ns)
        bottleneck = capacity_bit_s(cell, flow, flow.paths[0], int(t_ns[0]), window.end_ns)
        metrics |= {
            "throughput_bit_s": rate,
            "utilization_ratio": rate / bottleneck if rate is not None and bottleneck else None,
        }
    return metrics
