"""What of analyze_tcp a cell's flow is measured by: over all its subflows. Every definition: docs/metrics.md."""

from __future__ import annotations

import numpy as np

from ...captures.native import Ints
from ...captures.tcp.connection import analyze_tcp
from ...captures.tcp.direction import Direction
from ...captures.tcp.retransmission import Why
from ...captures.tcp.rtt import Samples
from ...core.types import Flow
from ..flow_packets import FlowPackets
from ..metrics import Window

NAMES = (
    "rtt_min_s",
    "rtt_median_s",
    "rtt_p95_s",
    "rtt_mean_s",
    "first_timeout_s",
    "fast_retransmitted_packets",
    "timeouts",
    "tail_loss_probes",
    "spurious_retransmitted_packets",
    "reordered_packets",
)


def tcp_metrics(
    flow: Flow, sender: FlowPackets | None, receiver: FlowPackets | None, window: Window
) -> dict[str, float | None]:
    """The metrics of NAMES in the window; all None for SCTP. Those of a point that was not captured are None."""
    found: dict[str, float | None] = dict.fromkeys(NAMES)
    if flow.protocol == "sctp":
        return found
    if sender is not None:
        found |= _at_sender(_directions(sender, at_sender=True), sender.t0_realtime_ns, window)
    if receiver is not None:
        count = 0
        for one in _directions(receiver, at_sender=False):
            assert one.arrivals is not None  # it is not the sender's capture
            moments = one.data.time_ns[one.arrivals.segment[one.arrivals.reordered]]
            count += int(_within(moments, receiver.t0_realtime_ns, window).sum())
        found["reordered_packets"] = float(count)
    return found


def _directions(view: FlowPackets, *, at_sender: bool) -> list[Direction]:
    """The data direction of each subflow."""
    return [
        analyze_tcp(view.point.capture, row, at=sends if at_sender else 1 - sends).directions[sends]
        for row, sends in view.data_direction.items()
    ]


def _within(time_ns: Ints, t0_ns: int, window: Window) -> Ints:
    """1 where an instant counts, else 0."""
    return np.ones(len(time_ns), dtype=np.int64) if window.end_ns is None else (time_ns - t0_ns <= window.end_ns) * 1


def _at_sender(directions: list[Direction], t0_ns: int, window: Window) -> dict[str, float | None]:
    rtt, why, spurious, waits = [], [], [], []
    for one in directions:
        keep = _within(one.rtt.time_ns, t0_ns, window) == 1
        rtt.append(one.rtt.rtt_ns[keep])
        again = one.retransmissions
        if again is None:
            return {}
        keep = _within(one.data.time_ns[again.segment], t0_ns, window) == 1
        why.append(again.why[keep])
        waits.append(again.waited_ns[keep & (again.why == Why.TIMEOUT) & (again.series == 1)])
        spurious.append(again.spurious[keep])
    if not directions:
        return {}
    all_rtt = np.concatenate(rtt)
    samples, codes = Samples(all_rtt, all_rtt), np.concatenate(why)
    return {
        "rtt_min_s": samples.quantile_s(0),
        "rtt_median_s": samples.quantile_s(0.5),
        "rtt_p95_s": samples.quantile_s(0.95),
        "rtt_mean_s": mean_s(all_rtt),
        "first_timeout_s": mean_s(np.concatenate(waits)),
        "fast_retransmitted_packets": float((codes == Why.FAST).sum()),
        "timeouts": float((codes == Why.TIMEOUT).sum()),
        "tail_loss_probes": float((codes == Why.TAIL_PROBE).sum()),
        "spurious_retransmitted_packets": float(np.concatenate(spurious).sum()),
    }


def mean_s(samples_ns: Ints) -> float | None:
    """Their mean; None without samples."""
    return float(samples_ns.mean()) / 1e9 if len(samples_ns) else None
