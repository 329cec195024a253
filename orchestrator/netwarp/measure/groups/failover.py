"""Metrics of an SCTP failover, as measured and as the failover model predicts it. Definitions: docs/metrics.md,
Failover of SCTP.

From both captures; `notification_time_s`, `unreachable_time_s` and `state_changes` come from notifications of the
sender's kernel to its application.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from ...captures.native import UNKNOWN, Bools
from ...captures.sctp.association import Association
from ...store.app_records import Notification
from ...store.ndjson import of_kind
from ..flow_packets import FlowPackets
from ..models.failover_inputs import failover_conditions, failover_settings
from ..models.sctp_failover_model import FailoverPrediction, Range, predict_failover
from ..observation import FlowObservation, Moments, Window, first_ns
from ..timetable import NEVER
from .recovery import recovery_metrics

REFILL_BYTES = 100_000
FAILED = ("POTENTIALLY_FAILED", "UNREACHABLE")
THEORY: dict[str, str] = {
    "first_retransmission_other_path_s": "first_retransmission",
    "first_new_data_other_path_s": "new_data",
    "notification_time_s": "notification",
    "unreachable_time_s": "unreachable",
    "outage_s": "outage",
    "return_time_s": "return",
}
"""Metric measured -> its name in theory_<name>_low_s, theory_<name>_high_s (expected) and <name>_as_theory (1 or 0)."""
PRIMARY = 0
"""Index of the flow's first path."""


def failover_metrics(observation: FlowObservation) -> dict[str, float | None]:
    """Measured values, and those that the failover model predicts; {} for other protocols than SCTP."""
    cell, flow, sender, receiver = observation.cell, observation.flow, observation.sender, observation.receiver
    if flow.protocol != "sctp":
        return {}
    metrics: dict[str, float | None] = {}
    if sender is not None:
        if flow.program is None:  # a program says nothing of what the kernel told it
            metrics |= _notifications(observation, sender)
        metrics["return_time_s"] = _return_time_s(observation)
        if receiver is not None:
            metrics["refill_time_s"] = _refill_time_s(observation)
            metrics["spurious_retransmissions"] = _spurious(sender, receiver, observation.window)
            metrics |= _undelivered(observation)
    conditions = failover_conditions(cell, flow, observation.connected_ns)
    if conditions is not None:
        prediction = predict_failover(failover_settings(cell, flow), conditions)
        if prediction is not None:
            watched = watched_s(observation.moments, observation.window, conditions.inside)
            metrics |= theory_metrics(prediction, observation.once(recovery_metrics) | metrics, watched)
    return metrics


def watched_s(moments: Moments, window: Window, inside: bool) -> dict[str, float]:
    """Metric -> how long after the fault (or after the repair) the window would still have shown it, in s.

    Empty if the path in use was not the primary that the model is about, or if the flow has no end yet. inside: the
    sender's own interface went down, so that a retransmission may look new: its first copy was dropped before the
    capture.
    """
    fault, end_ns = moments.fault, window.end_ns
    if fault is None or end_ns is None or moments.path_in_use != PRIMARY:
        return {}
    watched = dict.fromkeys(THEORY, (end_ns - fault.from_ns) / 1e9)
    if inside:
        del watched["first_retransmission_other_path_s"]
    if fault.to_ns is None:
        del watched["return_time_s"]
    else:
        watched["return_time_s"] = (end_ns - fault.to_ns) / 1e9
    return watched


def _notifications(observation: FlowObservation, sender: FlowPackets) -> dict[str, float | None]:
    """Metrics from the sender's notifications after the fault: those about the path in use, and the number about any
    path.
    """
    fault, in_use = observation.moments.fault, observation.moments.path_in_use
    if fault is None:
        return {}
    changes = [
        (change.t_ns - observation.t0_monotonic_ns - fault.from_ns, change)
        for change in of_kind(observation.sender_records, Notification)
        if change.type == "PEER_ADDR_CHANGE"
    ]
    after = [(since_ns, change) for since_ns, change in changes if since_ns >= 0]
    metrics: dict[str, float | None] = {"state_changes": float(len(after))}
    for name, states in (("notification_time_s", FAILED), ("unreachable_time_s", FAILED[1:])):
        times = [
            since_ns / 1e9
            for since_ns, change in after
            if change.state in states and sender.peers.get(str(change.address)) == in_use and in_use is not None
        ]
        metrics[name] = min(times, default=None)
    return metrics


def _return_time_s(observation: FlowObservation) -> float | None:
    """Time from the repair to the first new data on the path in use before the fault, if new data had left that
    path.
    """
    moments, data = observation.moments, observation.sent
    fault, moved = moments.fault, moments.first_new_sent_other_path_ns
    if data is None or fault is None or fault.to_ns is None or moved is None:
        return None
    begun = max(fault.to_ns, moved)
    back = first_ns(data.t_ns, (data.path == moments.path_in_use) & (data.new_bytes > 0) & (data.t_ns > begun))
    return None if back is None else (back - fault.to_ns) / 1e9


def _refill_time_s(observation: FlowObservation) -> float | None:
    """Time from the fault to the arrival of the first REFILL_BYTES of new payload on other paths than the one
    in use.
    """
    moments, data = observation.moments, observation.arrived
    if data is None or moments.fault is None or moments.path_in_use is None:
        return None
    elsewhere = (data.t_ns >= moments.fault.from_ns) & (data.path != moments.path_in_use)
    at_ns = first_ns(data.t_ns, np.cumsum(data.new_bytes * elsewhere) >= REFILL_BYTES)
    return None if at_ns is None else (at_ns - moments.fault.from_ns) / 1e9


def _spurious(sender: FlowPackets, receiver: FlowPackets, window: Window) -> float | None:
    """Number of chunks that were sent again although the receiver had taken them. Both captures count TSNs from the
    INIT's.
    """
    if len(sender.data_direction) != 1 or len(receiver.data_direction) != 1:
        return None
    sent, arrived = (
        Association(packets.point.capture, row, direction=direction)
        for packets in (sender, receiver)
        for row, direction in packets.data_direction.items()
    )
    again, times = sent.sent.repeated, sent.sent.rows["time_ns"]
    again = again[window.holds(times[again] - sender.t0_realtime_ns)]
    # one more: of a TSN that never arrived
    taken_ns = np.append(np.append(arrived.sent.rows["time_ns"], NEVER)[arrived.taken], NEVER)
    tsns = np.append(arrived.sent.tsns, UNKNOWN)
    place = np.searchsorted(arrived.sent.tsns, sent.sent.rows["tsn"][again])
    there: Bools = tsns[place] == sent.sent.rows["tsn"][again]
    return float((there & (taken_ns[place] < times[again])).sum())


def _undelivered(observation: FlowObservation) -> dict[str, float | None]:
    messages = observation.messages
    if messages is None or observation.window.end_ns is None:
        return {}
    return {"undelivered_messages": float((messages.delivered_ns == NEVER).sum())}


def theory_metrics(
    prediction: FailoverPrediction, measured: Mapping[str, float | None], watched: Mapping[str, float]
) -> dict[str, float | None]:
    """The predicted ranges, and for each of them 1 if the measured value lies in it, otherwise 0.

    An event that did not happen also gives 0 if its range ended while the flow was still watched (`watched`, in s).
    """
    ranges: dict[str, Range | None] = {name: getattr(prediction, f"{name}_s") for name in THEORY.values()}
    metrics: dict[str, float | None] = {
        "theory_timeouts": float(prediction.timeouts),
        "theory_rto_low_s": prediction.rto_s.low,
        "theory_rto_high_s": prediction.rto_s.high,
    }
    for metric, name in THEORY.items():
        predicted, value = ranges[name], measured.get(metric)
        metrics[f"theory_{name}_low_s"] = None if predicted is None else predicted.low
        metrics[f"theory_{name}_high_s"] = None if predicted is None else predicted.high
        as_theory = None
        if predicted is not None and value is not None:
            as_theory = float(predicted.holds(value))
        elif predicted is not None and _over_s(prediction, name, predicted) < watched.get(metric, 0.0):
            as_theory = 0.0
        metrics[f"{name}_as_theory"] = as_theory
    return metrics


def _over_s(prediction: FailoverPrediction, name: str, predicted: Range) -> float:
    """The times at which it can have happened, after the fault. An outage is a length: its gap may begin with a later
    timeout.
    """
    if name != "outage":
        return predicted.high
    return math.inf if prediction.new_data_s is None else max(predicted.high, prediction.new_data_s.high)
