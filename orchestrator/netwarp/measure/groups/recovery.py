"""Metrics around a flow's first fault: the packets it cost, when data flows again and on which path, and the heartbeat
that discovers the repaired path. Definitions: docs/metrics.md, Outage and recovery.
"""

from __future__ import annotations

import numpy as np

from ...captures.native import Ints
from ...core.types import Flow
from ...core.wire import ACK, COOKIE_ACK, HEARTBEAT_ACK, SYN
from ...store.app_records import Connected, GaveUp, Lost, Summary
from ...store.ndjson import last, of_kind
from ..flow_packets import FlowPackets
from ..observation import FlowObservation, end_ns, first_ns, is_break
from ..planned_paths import Fault
from ..sent_data import arrival_of_first_sent_since, data_units, same_connections, unit_paths

HEARD = ("peer_aborted", "peer_closed", "gave_up", "stalled")
"""Reasons by which an application hears that its connection is lost."""


def recovery_metrics(observation: FlowObservation) -> dict[str, float | None]:
    """Times since the fault and since its repair, and the longest silence at a fault."""
    moments, gap, messages = observation.moments, observation.longest_gap, observation.messages
    gave_up_ns = _gave_up_ns(observation)
    metrics: dict[str, float | None] = {
        "broken_connections": _broken(observation),
        "gave_up_s": _since(observation.flow.start_ns, gave_up_ns),
        "outage_s": None if gap is None else (gap[1] - gap[0]) / 1e9,
    }
    if observation.flow.program is None:
        metrics |= dict.fromkeys(("longest_message_delay_s", "first_message_after_fault_s"))
    if messages is not None:
        metrics["longest_message_delay_s"] = messages.longest_s(end_ns(observation))
    if (fault := moments.fault) is None:
        return metrics
    if messages is not None:
        metrics["first_message_after_fault_s"] = _since(fault.from_ns, messages.first_since(fault.from_ns))
    metrics |= {
        "gave_up_after_fault_s": _since(fault.from_ns, gave_up_ns),
        **_connections(observation, fault),
        "first_retransmission_other_path_s": _since(fault.from_ns, moments.first_retransmission_other_path_ns),
        "first_new_data_other_path_s": _since(fault.from_ns, moments.first_new_sent_other_path_ns),
        "first_useful_arrival_other_path_s": _since(fault.from_ns, moments.first_useful_arrival_other_path_ns),
        "recovery_time_s": _since(fault.to_ns, moments.first_new_after_repair_ns),
    }
    if (sent := observation.sent) is None:
        return metrics
    again = first_ns(sent.t_ns, sent.retransmission & (sent.t_ns >= fault.from_ns))
    metrics["first_retransmission_s"] = _since(fault.from_ns, again)
    if (path := moments.hit_path) is not None:
        metrics |= _by_path(observation, path, fault)
    return metrics


def _by_path(observation: FlowObservation, path: int, fault: Fault) -> dict[str, float | None]:
    """Metrics of the path in use, if the fault is on it, and of the other paths."""
    flow, window, sender, receiver = observation.flow, observation.window, observation.sender, observation.receiver
    sent, arrived = observation.sent, observation.arrived
    metrics: dict[str, float | None] = {}
    assert sender is not None and sent is not None
    if fault.to_ns is not None:
        on_path = (sent.path == path) & (sent.payload_bytes > 0) & (sent.t_ns >= fault.to_ns)
        metrics["data_on_repaired_path_s"] = _since(fault.to_ns, first_ns(sent.t_ns, on_path))
        metrics["new_data_on_repaired_path_packets"] = float((on_path & (sent.new_bytes > 0)).sum())
        answers = heartbeat_answers_ns(flow, sender, path)
        metrics["heartbeat_answered_s"] = _since(fault.to_ns, first_ns(answers, answers >= fault.to_ns))
    if receiver is None or arrived is None:
        return metrics
    if fault.to_ns is not None:
        there = (arrived.payload_bytes > 0) & (arrived.path == path) & (arrived.t_ns > fault.to_ns)
        metrics["arrival_on_repaired_path_s"] = _since(fault.to_ns, first_ns(arrived.t_ns, there))
    data = receiver.data
    elsewhere = (data.payload_bytes > 0) & (data.path != path) & (data.t_ns >= fault.from_ns) & window.holds(data.t_ns)
    metrics["first_arrival_other_path_s"] = _since(
        fault.from_ns, arrival_of_first_sent_since(sender, receiver, flow.protocol, elsewhere, fault.from_ns)
    )
    metrics["undelivered_packets"] = float(undelivered(flow, sender, receiver, path, fault))
    return metrics


def _broken(observation: FlowObservation) -> float | None:
    """How many of the connections of netwarp's own sender ended before their time; None without its last record."""
    flow, records = observation.flow, observation.sender_records
    summary = last(records, Summary)
    if summary is None or flow.program is not None or flow.is_page or flow.is_datagrams:
        return None
    reasons = [*(lost.reason for lost in of_kind(records, Lost)), summary.reason]
    return float(sum(is_break(flow, reason) for reason in reasons))


def _gave_up_ns(observation: FlowObservation) -> int | None:
    """The time from T0 at which the sender's kernel gave the connection up; None if it did not."""
    record = last(observation.sender_records, GaveUp)
    return None if record is None else record.t_ns - observation.t0_monotonic_ns


def _connections(observation: FlowObservation, fault: Fault) -> dict[str, float | None]:
    """When the sending application heard that its connection was lost, and when it was connected again. Of a program of
    the user's own: when a handshake ended.
    """
    if observation.flow.program is not None:
        return {"reconnect_time_s": _since(fault.from_ns, _handshake_after_ns(observation, fault))}
    origin_ns = observation.t0_monotonic_ns + fault.from_ns
    records = observation.sender_records
    heard = [(each.t_ns, each.reason) for each in of_kind(records, Lost)]
    heard += [(each.t_ns, each.reason) for each in of_kind(records, Summary)]
    told = (t_ns for t_ns, reason in heard if reason in HEARD)
    back = (each.t_ns for each in of_kind(records, Connected))
    return {
        name: _since(origin_ns, min((t_ns for t_ns in times if t_ns >= origin_ns), default=None))
        for name, times in (("loss_noticed_s", told), ("reconnect_time_s", back))
    }


def _handshake_after_ns(observation: FlowObservation, fault: Fault) -> int | None:
    """When the first handshake after the fault ended at the flow's sender (ns from T0), whichever end began it."""
    sender = observation.sender
    if sender is None:
        return None
    capture = sender.point.capture
    if observation.flow.protocol == "sctp":
        table, ended = capture.chunks, capture.chunks["type"] == COOKIE_ACK
    else:
        table, ended = capture.segments, capture.segments["flags"] & (SYN | ACK) == SYN | ACK
    ended &= sender.mask(table) | sender.mask(table, back=True)
    t_ns: Ints = table["time_ns"] - sender.t0_realtime_ns
    return first_ns(t_ns, ended & (t_ns >= fault.from_ns))


def undelivered(flow: Flow, sender: FlowPackets, receiver: FlowPackets, path: int, fault: Fault) -> int:
    """Data packets that left the sender on a path before the fault and did not arrive on it before its repair."""
    sent, column = data_units(sender, flow.protocol)
    arrived, _ = data_units(receiver, flow.protocol)
    sent_ns, arrived_ns = sent["time_ns"] - sender.t0_realtime_ns, arrived["time_ns"] - receiver.t0_realtime_ns
    before = (sent_ns < fault.from_ns) & (unit_paths(sender, sent) == path)
    came = unit_paths(receiver, arrived) == path
    if fault.to_ns is not None:
        came &= arrived_ns <= fault.to_ns
    missing = before
    for there, here in same_connections(sender, receiver).items():
        numbers = arrived[column][came & (arrived["flow"] == there)]
        missing &= (sent["flow"] != here) | ~np.isin(sent[column], numbers)
    return len(np.unique(sent["packet"][missing]))


def heartbeat_answers_ns(flow: Flow, sender: FlowPackets, path: int) -> Ints:
    """The times at which HEARTBEAT ACKs arrived at the flow's sender on a path (ns from T0)."""
    chunks = sender.point.capture.chunks
    if flow.protocol != "sctp":
        return np.zeros(0, dtype=np.int64)
    rows = sender.rows(chunks, back=True)
    rows = rows[rows["type"] == HEARTBEAT_ACK]
    times: Ints = rows["time_ns"][unit_paths(sender, rows) == path] - sender.t0_realtime_ns
    return times


def _since(origin_ns: int | None, at_ns: int | None) -> float | None:
    return None if at_ns is None or origin_ns is None else (at_ns - origin_ns) / 1e9
