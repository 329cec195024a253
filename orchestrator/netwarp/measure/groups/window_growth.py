"""Metrics of a flow's window growth: from the sender's capture what it sends per round trip and has outstanding; from
the kernel's samples the congestion window. Definitions: docs/metrics.md, Windows.
"""

from __future__ import annotations

import numpy as np

from ...captures.native import Floats
from ...captures.sctp.totals import zero_windows
from ..flow_packets import FlowPackets, associations_at, tcp_directions
from ..kernel_samples import PathSamples, time_weighted_mean
from ..observation import FlowObservation
from ..sent_data import AckedData, rounds
from .tail_probes import PROBE_ROUND_TRIPS
from .traffic import setup_time_s


def window_growth_metrics(observation: FlowObservation) -> dict[str, float | None]:
    """From the capture, and from the kernel's samples of the first path and of the path that the fault hits."""
    flow, window, hit = observation.flow, observation.window, observation.moments.hit_path
    metrics = _on_the_wire(observation) | {"zero_window_packets": _zero_window_packets(observation)}
    outstanding = observation.outstanding
    full = float(outstanding.nearly_full_bytes) if outstanding is not None and outstanding.window_bytes else None
    end_s = None if window.end_ns is None else window.end_ns / 1e9
    if (primary := observation.samples.get(flow.paths[0].name)) is not None:
        metrics["cwnd_bytes"] = time_weighted_mean(primary.t_s, primary.cwnd_bytes)
        metrics["srtt_s"] = time_weighted_mean(primary.t_s, primary.srtt_s)
        t_s, cwnd = _cwnd(primary, end_s)
        if len(cwnd):
            metrics["cwnd_initial_bytes"], metrics["cwnd_end_bytes"] = float(cwnd[0]), float(cwnd[-1])
        metrics["cwnd_window_time_s"] = _reached_s(t_s, cwnd, full, flow.start_ns / 1e9)
    if hit is not None and hit < len(flow.paths):
        metrics |= _around_fault(observation, hit, full, end_s)
    return metrics


def _on_the_wire(observation: FlowObservation) -> dict[str, float | None]:
    outstanding, sender = observation.outstanding, observation.sender
    if sender is None or outstanding is None:
        return {}
    first = _initial_packets(observation, sender, outstanding)
    full = outstanding.full_ns() if outstanding.nearly_full_bytes > 0 else None
    again = sender.data.t_ns[sender.data.retransmission & (sender.data.payload_bytes > 0)]
    fault = observation.moments.fault
    limits = [full, int(again[0]) if len(again) else None, fault.from_ns if fault else None]
    growing = list(rounds(outstanding, min((limit for limit in limits if limit is not None), default=None)))
    metrics: dict[str, float | None] = {"peer_window_bytes": float(outstanding.window_bytes) or None}
    if first is not None:
        metrics["initial_window_packets"] = float(first)
    if len(growing) > 1:
        metrics["slow_start_growth_ratio"] = float((growing[-1] / growing[0]) ** (1 / (len(growing) - 1)))
    if full is not None:
        metrics["window_full_time_s"] = (full - int(outstanding.sent_ns[0])) / 1e9
    return metrics


def _initial_packets(observation: FlowObservation, sender: FlowPackets, outstanding: AckedData) -> int | None:
    """The initial window. A sender of TCP that hears nothing for two round trips probes with new data if it has any
    (RFC 8985 7.3): that packet is not of it. Where the application sends by a schedule, it cannot be told from that.
    """
    first, flow = outstanding.initial_packets, observation.flow
    round_trip_s = setup_time_s(flow, sender)
    if first is None or first < 2 or flow.protocol == "sctp" or round_trip_s is None or observation.timetable.timed:
        return first
    waited_ns = int(outstanding.sent_ns[first - 1] - outstanding.sent_ns[first - 2])
    return first - 1 if waited_ns > PROBE_ROUND_TRIPS * round_trip_s * 1e9 else first


def _zero_window_packets(observation: FlowObservation) -> float | None:
    receiver = observation.receiver
    if receiver is None:
        return None
    until_ns = observation.window.until_ns(receiver)
    if observation.flow.protocol == "sctp":
        totals = [zero_windows(association, until_ns) for association in associations_at(receiver)]
    else:
        totals = [direction.zero_windows(until_ns) for direction in tcp_directions(receiver, at_sender=False)]
    return float(sum(each["zero_window_packets"] for each in totals))


def _around_fault(
    observation: FlowObservation, hit: int, full: float | None, end_s: float | None
) -> dict[str, float | None]:
    """hit: the path in use that the fault is on. full: bytes of the announced window, to within one packet."""
    flow, moments, samples = observation.flow, observation.moments, observation.samples
    assert moments.fault is not None
    fault_s = moments.fault.from_ns / 1e9
    metrics: dict[str, float | None] = {}
    if (on_path := samples.get(flow.paths[hit].name)) is not None:
        t_s, cwnd = _cwnd(on_path, end_s)
        if observation.outstanding is not None:
            growth = _growth(on_path, t_s, cwnd, (flow.start_ns / 1e9 + fault_s) / 2, fault_s)
            packet_bytes = observation.outstanding.packet_bytes
            metrics["cwnd_growth_per_rtt_packets"] = None if growth is None else growth / packet_bytes
        before, after = cwnd[t_s <= fault_s], cwnd[t_s > fault_s]
        metrics["cwnd_at_fault_bytes"] = float(before[-1]) if len(before) else None
        metrics["cwnd_lowest_after_fault_bytes"] = float(after.min()) if len(after) else None
    moved = [moments.first_retransmission_other_path_ns, moments.first_new_sent_other_path_ns]
    since_ns = min((at for at in moved if at is not None), default=None)
    times = []
    for number, path in enumerate(flow.paths):
        if number != hit and since_ns is not None and (other := samples.get(path.name)) is not None:
            times.append(_reached_s(*_cwnd(other, None), full, since_ns / 1e9))
    metrics["cwnd_window_time_other_path_s"] = min((time for time in times if time is not None), default=None)
    return metrics


def _growth(samples: PathSamples, t_s: Floats, cwnd: Floats, from_s: float, to_s: float) -> float | None:
    """Bytes per smoothed round-trip time by which cwnd grows between two instants; None without samples on both
    sides.
    """
    inside = (samples.t_s >= from_s) & (samples.t_s <= to_s) & ~np.isnan(samples.srtt_s)
    begin, end = np.flatnonzero(t_s <= from_s), np.flatnonzero(t_s <= to_s)
    if not len(begin) or not inside.any():
        return None
    srtt_s = float(samples.srtt_s[inside].mean())
    return float(cwnd[end[-1]] - cwnd[begin[-1]]) / ((to_s - from_s) / srtt_s)


def _cwnd(samples: PathSamples, end_s: float | None) -> tuple[Floats, Floats]:
    keep = ~np.isnan(samples.cwnd_bytes)
    if end_s is not None:
        keep &= samples.t_s <= end_s
    return samples.t_s[keep], samples.cwnd_bytes[keep]


def _reached_s(t_s: Floats, cwnd: Floats, full: float | None, since_s: float) -> float | None:
    """Time from an instant to the first later sample with at least `full` bytes."""
    if full is None:
        return None
    reached = t_s[(cwnd >= full) & (t_s >= since_s)]
    return float(reached[0]) - since_s if len(reached) else None
