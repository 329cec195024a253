"""The contract's metrics of one flow. Every definition: docs/metrics.md.

Data metrics come from the receiver's capture, in the data direction; what was retransmitted, and on which path
something was first sent, from the sender's. A metric that has nothing to measure is None.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from ..captures.native import Bools, Ints
from ..core.metrics.catalogue import METRICS
from ..core.types import Cell, Flow
from ..core.wire import ACK, COOKIE_ACK, INIT, SYN
from .delivery import Delivery
from .faults import Fault, faults_met, links_of
from .flow_packets import FlowPackets, PacketColumns
from .sent_times import first_sent_since

FLOW_METRICS = tuple(name for name, metric in METRICS.items() if metric.flows == "every")


@dataclasses.dataclass(frozen=True)
class Window:
    """What counts. first_ns: arrival of the first payload (None: none); end_ns: the last instant that counts (None:
    the flow has no end yet); complete: a flow by bytes got all of them.
    """

    first_ns: int | None
    end_ns: int | None
    complete: bool

    @property
    def seconds(self) -> float | None:
        """Length of (first arrival, end]; None if there is none."""
        if self.first_ns is None or self.end_ns is None or self.end_ns <= self.first_ns:
            return None
        return (self.end_ns - self.first_ns) / 1e9


@dataclasses.dataclass(frozen=True)
class Moments:
    """Instants around the flow's first fault, ns from T0; None where it did not happen."""

    fault: Fault | None = None
    path_in_use: int | None = None
    first_retransmission_other_path_ns: int | None = None
    first_new_sent_other_path_ns: int | None = None
    first_new_arrival_other_path_ns: int | None = None
    first_new_after_repair_ns: int | None = None


def window_of(flow: Flow, receiver: FlowPackets | None) -> Window:
    """Timed flows count up to their stop, flows by bytes up to the arrival of the last new payload."""
    if receiver is None:
        return Window(None, flow.stop_ns, False)
    fresh = np.flatnonzero(receiver.data.new_bytes > 0)
    t_ns, payload = receiver.data.t_ns[fresh], receiver.data.new_bytes[fresh]
    first = int(t_ns[0]) if len(t_ns) else None
    end = flow.stop_ns
    complete = False
    if flow.total_bytes is not None and len(t_ns):
        arrived = np.cumsum(payload)
        complete = bool(arrived[-1] >= flow.total_bytes)
        last = int(t_ns[np.searchsorted(arrived, flow.total_bytes)] if complete else t_ns[-1])
        if end is None or (complete and last < end):
            end = last
        complete = complete and last <= end
    return Window(first, end, complete)


def _rate(side: PacketColumns, amount: Ints, window: Window) -> float | None:
    seconds = window.seconds
    if seconds is None or window.first_ns is None or window.end_ns is None:
        return None
    counts = (side.t_ns > window.first_ns) & (side.t_ns <= window.end_ns)
    return float(amount[counts].sum()) * 8 / seconds


def first_ns(t_ns: Ints, condition: Bools) -> int | None:
    """The first instant at which a condition holds."""
    found = np.flatnonzero(condition)
    return int(t_ns[found[0]]) if len(found) else None


def moments_of(
    cell: Cell, flow: Flow, sender: FlowPackets | None, receiver: FlowPackets | None, window: Window
) -> Moments:
    """What happened around the first fault the flow meets."""
    faults = faults_met(cell, flow)
    if not faults:
        return Moments()
    fault = faults[0]
    after_repair = None
    if receiver is not None and fault.to_ns is not None:
        data = receiver.data.until(window.end_ns)
        after_repair = first_ns(data.t_ns, (data.new_bytes > 0) & (data.t_ns > fault.to_ns))
    if sender is None:
        return Moments(fault, first_new_after_repair_ns=after_repair)
    data = sender.data.until(window.end_ns)
    fresh = data.new_bytes > 0
    before = np.flatnonzero(fresh & (data.t_ns < fault.from_ns))
    in_use = int(data.path[before[-1]]) if len(before) else None
    hit = in_use is not None and (in_use >= len(flow.paths) or fault.link in links_of(cell, flow, flow.paths[in_use]))
    if not hit:
        return Moments(fault, in_use, first_new_after_repair_ns=after_repair)
    elsewhere = (data.path != in_use) & (data.t_ns >= fault.from_ns)
    failover = None
    if receiver is not None:
        arrived = receiver.data
        there = (arrived.path != in_use) & (arrived.new_bytes > 0) & (arrived.t_ns >= fault.from_ns)
        if window.end_ns is not None:
            there &= arrived.t_ns <= window.end_ns
        failover = first_sent_since(sender, receiver, flow.protocol, there, fault.from_ns)
    return Moments(
        fault=fault,
        path_in_use=in_use,
        first_retransmission_other_path_ns=first_ns(data.t_ns, elsewhere & data.other_path),
        first_new_sent_other_path_ns=first_ns(data.t_ns, elsewhere & fresh),
        first_new_arrival_other_path_ns=failover,
        first_new_after_repair_ns=after_repair,
    )


def longest_gap(cell: Cell, flow: Flow, receiver: FlowPackets, window: Window) -> tuple[int, int] | None:
    """The longest gap between two arrivals of new payload that touches a fault the flow meets: its two ends, ns.

    None: no fault; nothing arrived after it; or the longest silence is the one that lasts to the window's end, so
    that how long the outage would have been is not known.
    """
    data = receiver.data.until(window.end_ns)
    t_ns = data.t_ns[data.new_bytes > 0]
    best: tuple[int, int] | None = None
    silence = 0
    for fault in faults_met(cell, flow):
        to_ns = fault.to_ns if fault.to_ns is not None else cell.duration_ns
        touching = np.flatnonzero((t_ns[:-1] <= to_ns) & (t_ns[1:] >= fault.from_ns))
        if len(t_ns) and t_ns[-1] <= to_ns and window.end_ns is not None and window.end_ns >= fault.from_ns:
            silence = max(silence, window.end_ns - int(t_ns[-1]))
        if not len(touching):
            continue
        place = touching[np.argmax(np.diff(t_ns)[touching])]
        gap = (int(t_ns[place]), int(t_ns[place + 1]))
        if best is None or gap[1] - gap[0] > best[1] - best[0]:
            best = gap
    return best if best is not None and best[1] - best[0] >= silence else None


def setup_time_s(flow: Flow, sender: FlowPackets) -> float | None:
    """From the first SYN or INIT to the arrival of the first SYN+ACK or COOKIE ACK, both at the sender."""
    capture = sender.point.capture
    if flow.protocol == "sctp":
        table, kind = capture.chunks, capture.chunks["type"]
        asked, answered = kind == INIT, kind == COOKIE_ACK
    else:
        table, kind = capture.segments, capture.segments["flags"] & (SYN | ACK)
        asked, answered = kind == SYN, kind == SYN | ACK
    times: list[int | None] = []
    for condition, back in ((asked, 0), (answered, 1)):
        mine = np.zeros(len(table), dtype=np.bool_)
        for row, sends in sender.data_direction.items():
            mine |= (table["flow"] == row) & (table["direction"] == sends ^ back)
        times.append(first_ns(table["time_ns"], condition & mine))
    begun, done = times
    return None if begun is None or done is None else (done - begun) / 1e9


def flow_metrics(
    cell: Cell,
    flow: Flow,
    sender: FlowPackets | None,
    receiver: FlowPackets | None,
    delivery: Delivery | None,
    window: Window,
    moments: Moments,
) -> dict[str, float | None]:
    """Every metric of FLOW_METRICS but those of the kernel's own samples (cwnd_bytes, srtt_s stay None here)."""
    found: dict[str, float | None] = dict.fromkeys(FLOW_METRICS)
    if receiver is not None:
        found |= _receiver_metrics(cell, flow, receiver, delivery, window)
    if sender is not None:
        found["setup_time_s"] = setup_time_s(flow, sender)
        sent = sender.data.until(window.end_ns)
        found["retransmitted_packets"] = float(sent.retransmission.sum())
        found["retransmitted_bytes"] = float((sent.payload_bytes - sent.new_bytes).sum())
    if (fault := moments.fault) is not None:
        for name, moment, since in (
            ("first_retransmission_other_path_s", moments.first_retransmission_other_path_ns, fault.from_ns),
            ("first_new_data_other_path_s", moments.first_new_sent_other_path_ns, fault.from_ns),
            ("failover_time_s", moments.first_new_arrival_other_path_ns, fault.from_ns),
            ("recovery_time_s", moments.first_new_after_repair_ns, fault.to_ns),
        ):
            if moment is not None and since is not None:
                found[name] = (moment - since) / 1e9
    return found


def _receiver_metrics(
    cell: Cell, flow: Flow, receiver: FlowPackets, delivery: Delivery | None, window: Window
) -> dict[str, float | None]:
    data, back = receiver.data.until(window.end_ns), receiver.back.until(window.end_ns)
    throughput = _rate(data, data.ip_bytes, window)
    bottlenecks = [path.bottleneck_bit_s for path in flow.paths]
    capacity = None if None in bottlenecks else sum(rate for rate in bottlenecks if rate is not None)
    gap = longest_gap(cell, flow, receiver, window)
    waits = _waits(receiver, delivery, window)
    return {
        "goodput_bit_s": _rate(data, data.new_bytes, window),
        "throughput_bit_s": throughput,
        "utilization_ratio": throughput / capacity if throughput is not None and capacity else None,
        "completion_time_s": (window.end_ns - flow.start_ns) / 1e9
        if window.complete and window.end_ns is not None
        else None,
        "payload_bytes": float(data.new_bytes.sum()),
        "wire_bytes": float(data.ip_bytes.sum()),
        "packets": float(len(data.t_ns)),
        "data_packets": float((data.payload_bytes > 0).sum()),
        "ack_packets": float((back.acks & (back.payload_bytes == 0)).sum()),
        "unique_data_packets": float((data.new_bytes > 0).sum()),
        "outage_s": None if gap is None else (gap[1] - gap[0]) / 1e9,
        "hol_blocking_s": float(waits.mean()) / 1e9 if len(waits) else None,
    }


def _waits(receiver: FlowPackets, delivery: Delivery | None, window: Window) -> Ints:
    if delivery is None:
        return np.zeros(0, dtype=np.int64)
    waits = delivery.delivery_ns - delivery.arrival_ns
    if window.end_ns is None:
        return waits
    return waits[delivery.delivery_ns <= window.end_ns]


def jain_index(rates: list[float | None]) -> float | None:
    """Jain's fairness index of the flows' goodputs: (sum x)^2 / (n sum x^2); None below two flows, or if one has none.

    R. Jain, D. Chiu, W. Hawe: A Quantitative Measure of Fairness (DEC-TR-301, 1984), eq. 2.
    """
    known = [rate for rate in rates if rate is not None]
    if len(known) < 2 or len(known) < len(rates) or not any(known):
        return None
    return sum(known) ** 2 / (len(known) * sum(rate * rate for rate in known))
