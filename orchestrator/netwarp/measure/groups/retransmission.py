"""Metrics of retransmissions, their causes, and round-trip times: for TCP over all subflows, for SCTP over all
associations. Definitions: docs/metrics.md, Loss, retransmission and round trips.
"""

from __future__ import annotations

import numpy as np

from ...captures.native import Ints
from ...captures.sctp.association import Association
from ...captures.tcp.connection import analyze_tcp
from ...captures.tcp.direction import Direction
from ...captures.tcp.retransmission import RetransmissionCause
from ...captures.tcp.rtt import Samples
from ...core.wire import SACK
from ..flow_packets import FlowPackets
from ..observation import FlowObservation, Window


def retransmission_metrics(observation: FlowObservation) -> dict[str, float | None]:
    """The metrics of both protocols, then those of one."""
    sender, receiver, window = observation.sender, observation.receiver, observation.window
    sctp = observation.flow.protocol == "sctp"
    metrics: dict[str, float | None] = {}
    if (sent := observation.sent) is not None:
        metrics["retransmitted_packets"] = float(sent.retransmission.sum())
        metrics["retransmitted_bytes"] = float((sent.payload_bytes - sent.new_bytes).sum())
    if sender is not None:
        metrics |= _sctp_at_sender(sender, window) if sctp else _tcp_at_sender(sender, window)
    if receiver is not None:
        metrics |= _sctp_chunks(receiver, window) if sctp else {"reordered_packets": _reordered(receiver, window)}
    return metrics


def _directions(packets: FlowPackets, *, at_sender: bool) -> list[Direction]:
    """The data direction of each TCP subflow."""
    return [
        analyze_tcp(packets.point.capture, row, at=sends if at_sender else 1 - sends).directions[sends]
        for row, sends in packets.data_direction.items()
    ]


def _reordered(receiver: FlowPackets, window: Window) -> float:
    count = 0
    for direction in _directions(receiver, at_sender=False):
        assert direction.arrivals is not None  # it is not the sender's capture
        times = direction.data.time_ns[direction.arrivals.segment[direction.arrivals.reordered]]
        count += int(window.holds(times - receiver.t0_realtime_ns).sum())
    return float(count)


def _tcp_at_sender(sender: FlowPackets, window: Window) -> dict[str, float | None]:
    rtt, why, spurious, waits = [], [], [], []
    for direction in _directions(sender, at_sender=True):
        rtt.append(direction.rtt.rtt_ns[window.holds(direction.rtt.time_ns - sender.t0_realtime_ns)])
        again = direction.retransmissions
        if again is None:
            return {}
        keep = window.holds(direction.data.time_ns[again.segment] - sender.t0_realtime_ns)
        why.append(again.cause[keep])
        waits.append(again.waited_ns[keep & (again.cause == RetransmissionCause.TIMEOUT) & (again.series == 1)])
        spurious.append(again.spurious[keep])
    if not rtt:
        return {}
    all_rtt = np.concatenate(rtt)
    samples, codes = Samples(all_rtt, all_rtt), np.concatenate(why)
    return {
        "rtt_min_s": samples.quantile_s(0),
        "rtt_median_s": samples.quantile_s(0.5),
        "rtt_p95_s": samples.quantile_s(0.95),
        "rtt_mean_s": _mean_s(all_rtt),
        "first_timeout_s": _mean_s(np.concatenate(waits)),
        "fast_retransmitted_packets": float((codes == RetransmissionCause.FAST).sum()),
        "timeouts": float((codes == RetransmissionCause.TIMEOUT).sum()),
        "tail_loss_probes": float((codes == RetransmissionCause.TAIL_PROBE).sum()),
        "spurious_retransmitted_packets": float(np.concatenate(spurious).sum()),
    }


def _mean_s(samples_ns: Ints) -> float | None:
    return float(samples_ns.mean()) / 1e9 if len(samples_ns) else None


def _sctp_at_sender(sender: FlowPackets, window: Window) -> dict[str, float | None]:
    fast = timeout = expiries = sacks = elsewhere = 0
    rtt: list[Ints] = [np.zeros(0, dtype=np.int64)]
    waits: list[Ints] = [np.zeros(0, dtype=np.int64)]
    t0_ns = sender.t0_realtime_ns
    for row, sends in sender.data_direction.items():
        association = Association(sender.point.capture, row, direction=sends)
        again, times = association.again, association.sent.rows["time_ns"]
        kept = window.holds(times[again.row] - t0_ns)
        fast += int(again.fast[kept].sum())
        timeout += int(again.timeout[kept].sum())
        expired = again.row[again.expiries]
        expired = expired[window.holds(times[expired] - t0_ns)]
        expiries += len(expired)
        rtt.append(association.rtt.rtt_ns[window.holds(association.rtt.time_ns - t0_ns)])
        waits.append(_first_waits(association, expired))
        rows = association.chunks[(association.chunks["type"] == SACK) & (association.chunks["direction"] != sends)]
        rows = rows[window.holds(rows["time_ns"] - t0_ns)]
        sacks += len(rows)
        # 0 is the flow's first path
        elsewhere += sum(int((rows["path"] == path).sum()) for path, index in sender.path_index.items() if index)
    return {
        "fast_retransmissions": float(fast),
        "timeout_retransmissions": float(timeout),
        "t3_expiries": float(expiries),
        "rtt_mean_s": _mean_s(np.concatenate(rtt)),
        "first_timeout_s": _mean_s(np.concatenate(waits)),
        "sacks_other_path_ratio": elsewhere / sacks if sacks else None,
    }


def _sctp_chunks(receiver: FlowPackets, window: Window) -> dict[str, float | None]:
    rows = receiver.data_chunks
    rows = rows[window.holds(rows["time_ns"] - receiver.t0_realtime_ns)]
    packets = len(np.unique(rows["packet"]))
    return {"data_chunks": float(len(rows)), "chunks_per_packet_ratio": len(rows) / packets if packets else None}


def _first_waits(association: Association, rows: Ints) -> Ints:
    """The wait before the first T3 expiry of each series of expiries without progress: since the last acknowledgement
    of anything new, or since that TSN was last sent, whichever is later. rows: the first retransmission after each
    expiry.
    """
    sent, reports = association.sent, association.reports
    moved = np.concatenate([[np.iinfo(np.int64).min], reports.time_ns[reports.moved]])
    at_ns = sent.rows["time_ns"][rows]
    heard = moved[np.searchsorted(moved, at_ns, side="left") - 1]
    first = heard >= np.concatenate([[np.iinfo(np.int64).min], at_ns[:-1]])
    waits: Ints = at_ns - np.maximum(heard, sent.rows["time_ns"][sent.before[rows]])
    return waits[first]
