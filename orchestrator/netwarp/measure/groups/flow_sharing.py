"""Metrics of several flows: their shares while all of them run, and their gain when the first one ends. Definitions:
docs/metrics.md, Flows side by side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ...captures.time_spans import bytes_in
from ..observation import FlowObservation, goodput_known


def _rate_bit_s(flow: FlowObservation, from_ns: int, to_ns: int, *, goodput: bool) -> float | None:
    """Goodput or throughput in (from, to]; None if the span is empty or there is no capture."""
    if to_ns <= from_ns:
        return None
    if flow.datagrams is not None:  # netwarp's own UDP: a datagram is new once
        arrived = flow.datagrams.arrived
        t_ns, amount = arrived.t_ns, np.where(arrived.first, arrived.payload_bytes, 0) if goodput else arrived.ip_bytes
    elif flow.receiver is not None:
        data = flow.receiver.data
        t_ns, amount = data.t_ns, data.new_bytes if goodput else data.ip_bytes
    else:
        return None
    return bytes_in(t_ns, amount, from_ns, to_ns) * 8e9 / (to_ns - from_ns)


def flow_sharing_metrics(
    flows: Mapping[str, FlowObservation],
) -> tuple[dict[str, dict[str, float | None]], dict[str, float | None]]:
    """(metrics of each flow, metrics of the cell); both {} with fewer than two flows.

    All flows run from the last of their first arrivals to the first end (the end of a flow's window). The second span
    lasts from there to the next end. No values if a flow never began, or ended before another began. With a flow of
    QUIC shares are of the throughput, and goodputs have no value.
    """
    goodput = goodput_known(flows.values())
    nothing: dict[str, dict[str, float | None]] = {name: {} for name in flows}
    begun = [flow.window.first_ns for flow in flows.values() if flow.window.first_ns is not None]
    ends = {name: flow.window.end_ns for name, flow in flows.items()}
    known = sorted(end for end in ends.values() if end is not None)
    if len(flows) < 2 or len(begun) < len(flows) or len(known) < len(flows) or known[0] <= max(begun):
        return nothing, {}
    since, first, second = max(begun), known[0], known[1]
    rates = {name: _rate_bit_s(flow, since, first, goodput=goodput) for name, flow in flows.items()}
    total = sum(rate for rate in rates.values() if rate is not None)
    metrics: dict[str, dict[str, float | None]] = {}
    for name, flow in flows.items():
        rate, end = rates[name], ends[name]
        goes_on = end is not None and end > first
        after = _rate_bit_s(flow, first, second, goodput=goodput) if goes_on else None
        metrics[name] = {
            "goodput_all_run_bit_s": rate if goodput else None,
            "share_all_run_ratio": rate / total if rate is not None and total else None,
            "goodput_after_first_end_bit_s": after if goodput else None,
            "after_first_end_ratio": after / rate if after is not None and rate else None,
            "finish_place": float(1 + np.searchsorted(known, end)) if end is not None else None,
        }
    cell = {"jain_all_run_index": jain_index(list(rates.values())), "all_run_s": (first - since) / 1e9}
    return metrics, cell


def span_metrics(
    flows: Mapping[str, FlowObservation], from_ns: int, to_ns: int
) -> tuple[dict[str, dict[str, float | None]], dict[str, float | None]]:
    """(metrics of each flow, metrics of the cell) of what arrives in (from, to]. With a flow of QUIC shares are of the
    throughput, and goodputs have no value. Jain's index is of the flows that run all the time: others are not starved.
    """
    goodput = goodput_known(flows.values())
    wire = {name: _rate_bit_s(flow, from_ns, to_ns, goodput=False) for name, flow in flows.items()}
    rates = {name: _rate_bit_s(flow, from_ns, to_ns, goodput=goodput) for name, flow in flows.items()}
    total = sum(rate for rate in rates.values() if rate is not None)
    metrics = {
        name: {
            "span_goodput_bit_s": rate if goodput else None,
            "span_throughput_bit_s": wire[name],
            "span_share_ratio": rate / total if rate is not None and total else None,
        }
        for name, rate in rates.items()
    }
    running = [rates[name] for name, flow in flows.items() if flow.window.runs(from_ns, to_ns, flow.cell.duration_ns)]
    return metrics, {"span_jain_index": jain_index(running)} if len(flows) > 1 else {}


def jain_index(rates: Sequence[float | None]) -> float | None:
    """Jain's fairness index of the flows' goodputs: (sum x)^2 / (n sum x^2); None with fewer than two flows, or if one
    has no goodput.

    R. Jain, D. Chiu, W. Hawe: A Quantitative Measure of Fairness (DEC-TR-301, 1984), eq. 2.
    """
    known = [rate for rate in rates if rate is not None]
    if len(known) < 2 or len(known) < len(rates) or not any(known):
        return None
    return sum(known) ** 2 / (len(known) * sum(rate * rate for rate in known))
