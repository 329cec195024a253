"""Metrics of retransmissions, their causes, and round-trip times: for TCP over all subflows, for SCTP over all
associations. Definitions: docs/metrics.md, Loss, retransmission and round trips.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...captures.native import Ints
from ...captures.sctp.association import Association
from ...captures.sctp.totals import repeated
from ...captures.tcp.direction import Direction
from ...captures.tcp.retransmission import RetransmissionCause
from ...captures.tcp.rtt import Samples
from ...captures.time_spans import by
from ...core.wire import SACK
from ..flow_packets import FlowPackets, associations_at, tcp_directions
from ..observation import FlowObservation, Window

OF_TCP = ("fast_retransmitted_packets", "timeouts", "tail_loss_probes")
OF_SCTP = {
    "fast_retransmissions": "fast_retransmitted_chunks",
    "timeout_retransmissions": "timeout_retransmitted_chunks",
    "t3_expiries": "t3_expiries",
}
"""Metric -> the total of `netwarp analyze` that it is, in the window."""


def retransmission_metrics(observation: FlowObservation) -> dict[str, float | None]:
    """The metrics of both protocols, then those of one."""
    sender, receiver, window = observation.sender, observation.receiver, observation.window
    sctp = observation.flow.protocol == "sctp"
    metrics: dict[str, float | None] = {}
    if (sent := observation.sent) is not None:
        metrics["retransmitted_packets"] = float(sent.retransmission.sum())
        metrics["retransmitted_bytes"] = float((sent.payload_bytes - sent.new_bytes).sum())
    if sender is not None:
        until_ns = window.until_ns(sender)
        metrics |= _sctp_at_sender(sender, until_ns) if sctp else _tcp_at_sender(tcp_directions(sender), until_ns)
    if receiver is not None:
        metrics |= _sctp_chunks(receiver, window) if sctp else {"reordered_packets": _reordered(receiver, window)}
    return metrics


def _reordered(receiver: FlowPackets, window: Window) -> float:
    until_ns = window.until_ns(receiver)
    directions = tcp_directions(receiver, at_sender=False)
    return float(sum(direction.disordered(until_ns)["reordered_packets"] or 0 for direction in directions))


def _tcp_at_sender(directions: Sequence[Direction], until_ns: int | None) -> dict[str, float | None]:
    if not directions or any(direction.retransmissions is None for direction in directions):
        return {}
    totals = [direction.repeated(until_ns) for direction in directions]
    samples = Samples.within([direction.rtt for direction in directions], until_ns)
    round_trips = samples.quantiles_s("rtt")
    del round_trips["rtt_samples"]
    return {
        **round_trips,
        "rtt_mean_s": samples.mean_s,
        "first_timeout_s": _mean_s(np.concatenate([_first_timeouts(each, until_ns) for each in directions])),
        **{name: float(sum(each[name] or 0 for each in totals)) for name in OF_TCP},
        "spurious_retransmitted_packets": float(sum(each["spurious_retransmitted_packets"] or 0 for each in totals)),
    }


def _first_timeouts(direction: Direction, until_ns: int | None) -> Ints:
    """The wait before the first timeout of each series."""
    again = direction.retransmissions
    assert again is not None
    first = (again.cause == RetransmissionCause.TIMEOUT) & (again.series == 1)
    waits: Ints = again.waited_ns[first & by(direction.data.time_ns[again.segment], until_ns)]
    return waits


def _mean_s(samples_ns: Ints) -> float | None:
    return float(samples_ns.mean()) / 1e9 if len(samples_ns) else None


def _sctp_at_sender(sender: FlowPackets, until_ns: int | None) -> dict[str, float | None]:
    sacks = elsewhere = 0
    totals: list[dict[str, float]] = []
    rtt: list[Ints] = [np.zeros(0, dtype=np.int64)]
    waits: list[Ints] = [np.zeros(0, dtype=np.int64)]
    for association in associations_at(sender):
        totals.append(repeated(association, until_ns))
        rtt.append(association.rtt.rtt_ns[by(association.rtt.time_ns, until_ns)])
        waits.append(_first_waits(association, until_ns))
        back = association.chunks["direction"] != association.direction
        rows = association.chunks[(association.chunks["type"] == SACK) & back]
        rows = rows[by(rows["time_ns"], until_ns)]
        sacks += len(rows)
        # 0 is the flow's first path
        elsewhere += sum(int((rows["path"] == path).sum()) for path, index in sender.path_index.items() if index)
    return {
        **{metric: float(sum(each[name] for each in totals)) for metric, name in OF_SCTP.items()},
        "rtt_mean_s": _mean_s(np.concatenate(rtt)),
        "first_timeout_s": _mean_s(np.concatenate(waits)),
        "sacks_other_path_ratio": elsewhere / sacks if sacks else None,
    }


def _sctp_chunks(receiver: FlowPackets, window: Window) -> dict[str, float | None]:
    rows = receiver.data_chunks
    rows = rows[by(rows["time_ns"], window.until_ns(receiver))]
    packets = len(np.unique(rows["packet"]))
    return {"data_chunks": float(len(rows)), "chunks_per_packet_ratio": len(rows) / packets if packets else None}


def _first_waits(association: Association, until_ns: int | None) -> Ints:
    """The wait before the first T3 expiry of each series of expiries without progress: since the last acknowledgement
    of anything new, or since that TSN was last sent, whichever is later.
    """
    sent, reports, again = association.sent, association.reports, association.again
    rows = again.row[again.expiries]  # the first retransmission after each expiry
    rows = rows[by(sent.rows["time_ns"][rows], until_ns)]
    moved = np.concatenate([[np.iinfo(np.int64).min], reports.time_ns[reports.moved]])
    at_ns = sent.rows["time_ns"][rows]
    heard = moved[np.searchsorted(moved, at_ns, side="left") - 1]
    first = heard >= np.concatenate([[np.iinfo(np.int64).min], at_ns[:-1]])
    waits: Ints = at_ns - np.maximum(heard, sent.rows["time_ns"][sent.before[rows]])
    return waits[first]
