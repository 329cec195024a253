"""Metrics of netwarp's own UDP: what was lost, repeated and reordered, and the one-way delays of the rest. Definitions:
docs/metrics.md, Datagrams.
"""

from __future__ import annotations

import numpy as np

from ...captures.native import Floats
from ...captures.time_spans import by, bytes_in, rate_bit_s
from ...core.types import Flow
from ..datagram_flows import DatagramFlow, jitter_ns
from ..observation import Window
from ..timetable import NEVER
from .traffic import by_codepoint

SHARES = {"p50": 50.0, "p95": 95.0, "p99": 99.0}


def datagram_flow_metrics(flow: Flow, datagrams: DatagramFlow, window: Window) -> dict[str, float | None]:
    """Everything that the numbers in the payload tell. Delays and losses are of what was sent by the flow's stop: the
    window of a flow by bytes ends at its last new datagram's arrival, behind which everything else may be lost.
    """
    sent_by = by(datagrams.sent.t_ns, flow.stop_ns)
    there = datagrams.arrived_ns != NEVER
    known = int((datagrams.known & sent_by).sum())
    lost = int((datagrams.known & sent_by & ~there).sum())
    kept = there & sent_by
    sent_ns, arrived_ns = datagrams.sent.t_ns[kept], datagrams.arrived_ns[kept]
    delays: Floats = (arrived_ns - sent_ns) / 1e9
    metrics: dict[str, float | None] = {
        "lost_datagrams": float(lost),
        "datagram_loss_ratio": lost / known if known else None,
        "repeated_datagrams": float(datagrams.repeated),
        "reordered_datagrams": float(datagrams.reordered),
        "one_way_delay_min_s": float(delays.min()) if len(delays) else None,
        "one_way_delay_mean_s": float(delays.mean()) if len(delays) else None,
        "one_way_delay_max_s": float(delays.max()) if len(delays) else None,
        "delay_variation_p99_s": None,
    }
    for name, share in SHARES.items():
        metrics[f"one_way_delay_{name}_s"] = (
            float(np.percentile(delays, share, method="inverted_cdf")) if len(delays) else None
        )
    if len(delays):
        metrics["delay_variation_p99_s"] = float(np.percentile(delays - delays.min(), 99.0, method="inverted_cdf"))
    metrics |= by_codepoint(datagrams.sent.codepoint[sent_by], "sent")
    metrics |= by_codepoint(datagrams.arrived.codepoint[window.holds(datagrams.arrived.t_ns)], "arrived")
    jitter = jitter_ns(sent_ns, arrived_ns)
    metrics["jitter_s"] = None if jitter is None else jitter / 1e9
    new = datagrams.arrived.first & window.holds(datagrams.arrived.t_ns)
    t_ns, payload = datagrams.arrived.t_ns[new], datagrams.arrived.payload_bytes[new]
    metrics["payload_bytes"] = float(payload.sum())
    metrics["data_packets"] = metrics["unique_data_packets"] = float(len(t_ns))
    if window.first_ns is not None and window.end_ns is not None and window.end_ns > window.first_ns:
        span = window.end_ns - window.first_ns
        metrics["goodput_bit_s"] = rate_bit_s(bytes_in(t_ns, payload, window.first_ns, window.end_ns), span)
    return metrics


def datagram_window(flow: Flow, datagrams: DatagramFlow) -> Window:
    """Up to the stop of a timed flow; of a flow by bytes up to the last arrival of a datagram that had not arrived
    before, complete if nothing is missing.
    """
    t_ns = datagrams.arrived.t_ns[datagrams.arrived.first]
    first = int(t_ns[0]) if len(t_ns) else None
    if flow.total_bytes is None:
        return Window(first, flow.stop_ns)
    complete = int(datagrams.arrived.payload_bytes[datagrams.arrived.first].sum()) >= flow.total_bytes
    end = int(t_ns[-1]) if len(t_ns) else None
    if flow.stop_ns is not None and (end is None or end > flow.stop_ns):
        end, complete = flow.stop_ns, False
    return Window(first, end, complete)
