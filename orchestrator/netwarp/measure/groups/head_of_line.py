"""Metrics of head-of-line delay: how long data that has arrived waits for data that has not, per stream and as if all
were one stream. Definitions: docs/metrics.md, Head-of-line delay; measure/delivery.py.
"""

from __future__ import annotations

import numpy as np

from ...captures.native import Ints
from ..delivery import delivered_messages
from ..flow_packets import FlowPackets
from ..observation import FlowObservation, Window

P95 = 95.0


def head_of_line_metrics(observation: FlowObservation) -> dict[str, float | None]:
    """Delays of the data delivered within the window; for SCTP per stream and as one stream. {} if the captures do not
    show which bytes belong together.
    """
    delivery, window = observation.delivery, observation.window
    if observation.receiver is None or delivery is None:
        return {}
    kept = window.holds(delivery.delivery_ns)
    waits, streams = (delivery.delivery_ns - delivery.arrival_ns)[kept], delivery.stream[kept]
    mean, p95, longest, blocked = _summary(waits)
    metrics = {
        "hol_blocking_s": mean,
        "hol_blocking_p95_s": p95,
        "hol_blocking_max_s": longest,
        "hol_blocked_ratio": blocked,
    }
    if observation.flow.protocol != "sctp":
        return metrics
    means = [float(waits[streams == stream].mean()) / 1e9 for stream in np.unique(streams).tolist()]
    metrics["hol_blocking_least_stream_s"] = min(means, default=None)
    metrics["hol_blocking_most_stream_s"] = max(means, default=None)
    mean, p95, longest, blocked = _summary(_waits_as_one(observation.receiver, window))
    return metrics | {
        "hol_blocking_one_stream_s": mean,
        "hol_blocking_one_stream_p95_s": p95,
        "hol_blocking_one_stream_max_s": longest,
        "hol_blocked_one_stream_ratio": blocked,
    }


def _waits_as_one(receiver: FlowPackets, window: Window) -> Ints:
    waits = [np.zeros(0, dtype=np.int64)]
    for row in receiver.data_direction:
        sent = delivered_messages(receiver, row)
        delivered_ns = sent.one_stream_ns[sent.delivered_as_one] - receiver.t0_realtime_ns
        waits.append(sent.waits_as_one_ns[window.holds(delivered_ns)])
    return np.concatenate(waits)


def _summary(waits: Ints) -> tuple[float | None, float | None, float | None, float | None]:
    """Mean, 95th percentile (one of the values) and maximum in s, and the share of delays above 0."""
    if not len(waits):
        return None, None, None, None
    p95 = float(np.percentile(waits, P95, method="inverted_cdf"))
    return float(waits.mean()) / 1e9, p95 / 1e9, float(waits.max()) / 1e9, float((waits > 0).mean())
