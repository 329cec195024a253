"""The metrics of a cell's SCTP flow that associations tell. Definitions: docs/metrics.md, "Metrics of SCTP"."""

from __future__ import annotations

import numpy as np

from ...captures.native import Ints
from ...captures.sctp.association import Association
from ...core.types import Flow
from ...core.wire import DATA, I_DATA, SACK
from ..flow_packets import FlowPackets, sent_rows
from ..metrics import Window
from .tcp import mean_s


def sctp_metrics(
    flow: Flow, sender: FlowPackets | None, receiver: FlowPackets | None, window: Window
) -> dict[str, float | None]:
    """{} for other protocols. What was seen after the window's end does not count."""
    if flow.protocol != "sctp":
        return {}
    found = {} if sender is None else _of_sender(sender, window)
    return found if receiver is None else found | _chunks(receiver, window)


def _until(view: FlowPackets, time_ns: Ints, window: Window) -> Ints:
    """Places of what was seen within the window."""
    if window.end_ns is None:
        return np.arange(len(time_ns))
    return np.flatnonzero(time_ns - view.t0_realtime_ns <= window.end_ns)


def _of_sender(sender: FlowPackets, window: Window) -> dict[str, float | None]:
    fast = timeout = expiries = sacks = elsewhere = 0
    rtt: list[Ints] = [np.zeros(0, dtype=np.int64)]
    waits: list[Ints] = [np.zeros(0, dtype=np.int64)]
    for row, sends in sender.data_direction.items():
        one = Association(sender.point.capture, row, direction=sends)
        again, times = one.again, one.sent.rows["time_ns"]
        kept = _until(sender, times[again.row], window)
        fast += int(again.fast[kept].sum())
        timeout += int((~again.fast[kept]).sum())
        expired = again.row[again.expiries]
        expired = expired[_until(sender, times[expired], window)]
        expiries += len(expired)
        rtt.append(one.rtt.rtt_ns[_until(sender, one.rtt.time_ns, window)])
        waits.append(_first_waits(one, expired))
        rows = one.chunks[(one.chunks["type"] == SACK) & (one.chunks["direction"] != sends)]
        rows = rows[_until(sender, rows["time_ns"], window)]
        sacks += len(rows)
        # 0 is the flow's first path
        elsewhere += sum(int((rows["path"] == path).sum()) for path, index in sender.path_index.items() if index)
    return {
        "fast_retransmissions": float(fast),
        "timeout_retransmissions": float(timeout),
        "t3_expiries": float(expiries),
        "rtt_mean_s": mean_s(np.concatenate(rtt)),
        "first_timeout_s": mean_s(np.concatenate(waits)),
        "sacks_other_path_ratio": elsewhere / sacks if sacks else None,
    }


def _chunks(receiver: FlowPackets, window: Window) -> dict[str, float | None]:
    rows = sent_rows(receiver, receiver.point.capture.chunks)
    rows = rows[np.isin(rows["type"], (DATA, I_DATA))]
    rows = rows[_until(receiver, rows["time_ns"], window)]
    packets = len(np.unique(rows["packet"]))
    return {"data_chunks": float(len(rows)), "chunks_per_packet_ratio": len(rows) / packets if packets else None}


def _first_waits(one: Association, rows: Ints) -> Ints:
    """The wait before the first T3 expiry of each series without progress: since an acknowledgement moved anything, or
    since that TSN was last sent, if that was later. rows: the first retransmission after each expiry.
    """
    sent, reports = one.sent, one.reports
    moved = np.concatenate([[np.iinfo(np.int64).min], reports.time_ns[reports.moved]])
    at_ns = sent.rows["time_ns"][rows]
    heard = moved[np.searchsorted(moved, at_ns, side="left") - 1]
    first = heard >= np.concatenate([[np.iinfo(np.int64).min], at_ns[:-1]])
    waits: Ints = at_ns - np.maximum(heard, sent.rows["time_ns"][sent.before[rows]])
    return waits[first]
