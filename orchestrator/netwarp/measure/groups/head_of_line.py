"""Head-of-line delay: how long what has arrived waits for what has not, in its stream and as if all were one stream.

What waits for what: docs/metrics.md, Head-of-line delay, and `Delivery`.
"""

from __future__ import annotations

import numpy as np

from ...captures.native import Ints
from ...captures.sctp.messages import messages
from ...core.types import Flow
from ..delivery import Delivery
from ..flow_packets import FlowPackets, sent_rows
from ..metrics import Window

P95 = 95.0


def waiting_metrics(
    flow: Flow, receiver: FlowPackets | None, delivery: Delivery | None, window: Window
) -> dict[str, float | None]:
    """WAITING_METRICS, and of SCTP flows STREAM_WAITING_METRICS; {} where nothing tells what belongs together.

    Only what is delivered within the window counts: within each reading by its own delivery.
    """
    if receiver is None or delivery is None:
        return {}
    kept = _until(delivery.delivery_ns, window)
    waits, streams = (delivery.delivery_ns - delivery.arrival_ns)[kept], delivery.stream[kept]
    _, p95, most, blocked = _told(waits)
    found = {"hol_blocking_p95_s": p95, "hol_blocking_max_s": most, "hol_blocked_ratio": blocked}
    if flow.protocol != "sctp":
        return found
    means = [_told(waits[streams == stream])[0] for stream in np.unique(streams).tolist()]
    known = [mean for mean in means if mean is not None]
    found["hol_blocking_least_stream_s"] = min(known, default=None)
    found["hol_blocking_most_stream_s"] = max(known, default=None)
    names = ("", "_p95", "_max")
    *times, blocked = _told(_waits_as_one(receiver, window))
    found |= {f"hol_blocking_one_stream{name}_s": time for name, time in zip(names, times, strict=True)}
    found["hol_blocked_one_stream_ratio"] = blocked
    return found


def _until(delivery_ns: Ints, window: Window) -> Ints:
    """Places of what was delivered (ns from T0) by the window's end."""
    if window.end_ns is None:
        return np.arange(len(delivery_ns))
    return np.flatnonzero(delivery_ns <= window.end_ns)


def _waits_as_one(receiver: FlowPackets, window: Window) -> Ints:
    table = sent_rows(receiver, receiver.point.capture.chunks)
    waits = [np.zeros(0, dtype=np.int64)]
    for row in receiver.data_direction:
        told = messages(table[table["flow"] == row])
        at = told.one_stream_ns[told.delivered_as_one] - receiver.t0_realtime_ns
        waits.append(told.waits_as_one_ns[_until(at, window)])
    return np.concatenate(waits)


def _told(waits: Ints) -> tuple[float | None, float | None, float | None, float | None]:
    """Mean, 95th percentile (one of the values) and largest in s; the share of those above 0."""
    if not len(waits):
        return None, None, None, None
    p95 = float(np.percentile(waits, P95, method="inverted_cdf"))
    return float(waits.mean()) / 1e9, p95 / 1e9, float(waits.max()) / 1e9, float((waits > 0).mean())
