"""The metrics of a cell's SCTP flow that associations tell. Definitions: docs/metrics.md, "Metrics of SCTP"."""

from __future__ import annotations

import numpy as np

from ...model import Flow
from ..metrics import Window
from ..native import Ints
from ..view import View, sent_rows
from .association import Association
from .names import DATA, I_DATA, SACK


def sctp_metrics(flow: Flow, sender: View | None, receiver: View | None, window: Window) -> dict[str, float | None]:
    """{} for other protocols. What was seen after the window's end does not count."""
    if flow.protocol != "sctp":
        return {}
    found = {} if sender is None else _of_sender(sender, window)
    return found if receiver is None else found | _chunks(receiver, window)


def _until(view: View, time_ns: Ints, window: Window) -> Ints:
    """Places of what was seen within the window."""
    if window.end_ns is None:
        return np.arange(len(time_ns))
    return np.flatnonzero(time_ns - view.t0_realtime_ns <= window.end_ns)


def _of_sender(sender: View, window: Window) -> dict[str, float | None]:
    fast = timeout = expiries = sacks = elsewhere = 0
    for row, sends in sender.data_direction.items():
        one = Association(sender.point.capture, row, direction=sends)
        again, times = one.again, one.sent.rows["time_ns"]
        kept = _until(sender, times[again.row], window)
        fast += int(again.fast[kept].sum())
        timeout += int((~again.fast[kept]).sum())
        expiries += len(_until(sender, times[again.row[again.expiries]], window))
        rows = one.chunks[(one.chunks["type"] == SACK) & (one.chunks["direction"] != sends)]
        rows = rows[_until(sender, rows["time_ns"], window)]
        sacks += len(rows)
        # 0 is the flow's first path
        elsewhere += sum(int((rows["path"] == path).sum()) for path, index in sender.path_index.items() if index)
    return {
        "fast_retransmissions": float(fast),
        "timeout_retransmissions": float(timeout),
        "t3_expiries": float(expiries),
        "sacks_other_path_ratio": elsewhere / sacks if sacks else None,
    }


def _chunks(receiver: View, window: Window) -> dict[str, float | None]:
    rows = sent_rows(receiver, receiver.point.capture.chunks)
    rows = rows[np.isin(rows["type"], (DATA, I_DATA))]
    rows = rows[_until(receiver, rows["time_ns"], window)]
    packets = len(np.unique(rows["packet"]))
    return {"data_chunks": float(len(rows)), "chunks_per_packet_ratio": len(rows) / packets if packets else None}
