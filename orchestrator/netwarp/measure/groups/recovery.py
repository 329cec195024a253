"""What a flow does around its first fault, from the captures: what the fault took, when data flow again, on which path,
and the heartbeat that finds a repaired path again. Every definition: docs/metrics.md.
"""

from __future__ import annotations

import numpy as np

from ...captures.native import Ints
from ...core.types import Cell, Flow
from ..faults import Fault, links_of
from ..flow_packets import FlowPackets
from ..metrics import Moments, Window, first_ns
from ..sent_times import data_units, first_sent_since, unit_paths

HEARTBEAT_ACK = 5
NAMES = (
    "undelivered_packets",
    "first_retransmission_s",
    "first_arrival_other_path_s",
    "data_on_repaired_path_s",
    "arrival_on_repaired_path_s",
    "new_data_on_repaired_path_packets",
    "heartbeat_answered_s",
)


def hit_path(cell: Cell, flow: Flow, moments: Moments) -> int | None:
    """The path in use when the fault began, if the fault is on it."""
    in_use = moments.path_in_use
    if moments.fault is None or in_use is None:
        return None
    outside = in_use >= len(flow.paths)
    return in_use if outside or moments.fault.link in links_of(cell, flow, flow.paths[in_use]) else None


def recovery_metrics(
    cell: Cell, flow: Flow, sender: FlowPackets | None, receiver: FlowPackets | None, window: Window, moments: Moments
) -> dict[str, float | None]:
    """Every metric of NAMES; None where there is nothing to measure."""
    found: dict[str, float | None] = dict.fromkeys(NAMES)
    fault, path = moments.fault, hit_path(cell, flow, moments)
    if fault is None or sender is None:
        return found
    sent = sender.data.until(window.end_ns)
    found["first_retransmission_s"] = _since(
        fault.from_ns, first_ns(sent.t_ns, sent.retransmission & (sent.t_ns >= fault.from_ns))
    )
    if path is None:
        return found
    if fault.to_ns is not None:
        on_path = (sent.path == path) & (sent.payload_bytes > 0) & (sent.t_ns >= fault.to_ns)
        found["data_on_repaired_path_s"] = _since(fault.to_ns, first_ns(sent.t_ns, on_path))
        found["new_data_on_repaired_path_packets"] = float((on_path & (sent.new_bytes > 0)).sum())
        answers = heartbeat_answers_ns(flow, sender, path)
        found["heartbeat_answered_s"] = _since(fault.to_ns, first_ns(answers, answers >= fault.to_ns))
    if receiver is None:
        return found
    arrived = receiver.data.until(window.end_ns)
    carries = arrived.payload_bytes > 0
    if fault.to_ns is not None:
        there = carries & (arrived.path == path) & (arrived.t_ns > fault.to_ns)
        found["arrival_on_repaired_path_s"] = _since(fault.to_ns, first_ns(arrived.t_ns, there))
    elsewhere = (receiver.data.payload_bytes > 0) & (receiver.data.path != path) & (receiver.data.t_ns >= fault.from_ns)
    if window.end_ns is not None:
        elsewhere &= receiver.data.t_ns <= window.end_ns
    found["first_arrival_other_path_s"] = _since(
        fault.from_ns, first_sent_since(sender, receiver, flow.protocol, elsewhere, fault.from_ns)
    )
    found["undelivered_packets"] = float(undelivered(flow, sender, receiver, path, fault))
    return found


def undelivered(flow: Flow, sender: FlowPackets, receiver: FlowPackets, path: int, fault: Fault) -> int:
    """Data packets that left the sender on a path before the fault and did not arrive on it before its repair."""
    sent, column = data_units(sender, flow.protocol)
    arrived, _ = data_units(receiver, flow.protocol)
    sent_ns, arrived_ns = sent["time_ns"] - sender.t0_realtime_ns, arrived["time_ns"] - receiver.t0_realtime_ns
    before = (sent_ns < fault.from_ns) & (unit_paths(sender, sent) == path)
    came = unit_paths(receiver, arrived) == path
    if fault.to_ns is not None:
        came &= arrived_ns <= fault.to_ns
    missing = before & ~np.isin(sent[column], arrived[column][came])
    return len(np.unique(sent["packet"][missing]))


def heartbeat_answers_ns(flow: Flow, sender: FlowPackets, path: int) -> Ints:
    """When HEARTBEAT ACKs arrived at the flow's sender on a path (ns from T0)."""
    chunks = sender.point.capture.chunks
    if flow.protocol != "sctp":
        return np.zeros(0, dtype=np.int64)
    rows = chunks[chunks["type"] == HEARTBEAT_ACK]
    mine = np.array(
        [
            sender.data_direction.get(int(row["flow"])) == 1 - int(row["direction"])
            and sender.path_index[int(row["path"])] == path
            for row in rows
        ],
        dtype=np.bool_,
    )
    times: Ints = rows["time_ns"][mine] - sender.t0_realtime_ns
    return times


def _since(origin_ns: int, at_ns: int | None) -> float | None:
    return None if at_ns is None else (at_ns - origin_ns) / 1e9
