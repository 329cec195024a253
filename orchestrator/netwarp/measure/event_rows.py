"""The events of a cell for its report page: the timeline, the moments of the transport, and the notifications and
errors of the sender's socket.
"""

from __future__ import annotations

from collections import Counter

import msgspec
import numpy as np

from ..core.numbers import fixed
from ..core.types import OF_TRACE, Cell
from ..core.units import counted
from ..core.wire import HEARTBEAT, HEARTBEAT_ACK
from ..store.app_records import Error, GaveUp, Notification, SwitchPrimary
from ..store.derived import CellEvent
from .groups.mptcp import mptcp_events
from .observation import FlowObservation

HEARTBEATS_SHOWN = 60
AFTER_REPAIR_NS = 10_000_000_000
ANNOTATED = (Notification, SwitchPrimary, GaveUp, Error)


def timeline_events(cell: Cell) -> list[CellEvent]:
    """The spec's events, at their configured times; of those of a link's trace only the first."""
    events = []
    traced = Counter(event.name for event in cell.timeline if event.name.endswith(OF_TRACE))
    for event in cell.timeline:
        if event.name.endswith(OF_TRACE):
            if count := traced.pop(event.name, 0):
                text = f"{event.link} follows its trace from here on: {counted(count, 'change')}"
                events.append(CellEvent(event.at_ns / 1e9, "", event.action, text))
            continue
        what = [each for each in (event.link, event.node, event.flow) if each]
        directions = f", {' and '.join(event.directions)}" if event.directions else ""
        text = f"{event.action} {' of '.join(what)} ({event.name}{directions})"
        events.append(CellEvent(event.at_ns / 1e9, "", event.action, text))
    return events


def flow_events(observation: FlowObservation) -> list[CellEvent]:
    """Every event of a flow."""
    return [
        *_moments(observation),
        *mptcp_events(observation),
        *_outage(observation),
        *_heartbeats(observation),
        *_socket(observation),
    ]


def _moments(observation: FlowObservation) -> list[CellEvent]:
    """The moments after the first fault."""
    flow, moments, fault = observation.flow, observation.moments, observation.moments.fault
    if fault is None:
        return []
    other = f"a path other than {'?' if moments.path_in_use is None else observation.path_names[moments.path_in_use]}"
    events = []
    for kind, at_ns, text in (
        ("first_retransmission_other_path", moments.first_retransmission_other_path_ns,
         f"first retransmission on {other}: {{}} s after the fault (sender)"),
        ("first_new_data_other_path", moments.first_new_sent_other_path_ns,
         f"first new data on {other}: {{}} s after the fault (sender)"),
        ("first_useful_arrival_other_path", moments.first_useful_arrival_other_path_ns,
         f"first data that the receiver lacked, on {other}: {{}} s after the fault (receiver)"),
        ("first_new_data_after_repair", moments.first_new_after_repair_ns,
         "first new data arrives {} s after the repair (receiver)"),
    ):  # fmt: skip
        origin = fault.to_ns if kind == "first_new_data_after_repair" else fault.from_ns
        if at_ns is not None and origin is not None:
            after = fixed((at_ns - origin) / 1e9, 6)
            events.append(CellEvent(at_ns / 1e9, flow.name, kind, text.format(after)))
    return events


def _outage(observation: FlowObservation) -> list[CellEvent]:
    """The longest gap that touches a fault."""
    if (gap := observation.longest_gap) is None:
        return []
    text = f"no new payload arrives for {fixed((gap[1] - gap[0]) / 1e9, 6)} s"
    return [CellEvent(gap[0] / 1e9, observation.flow.name, "outage", text)]


def _socket(observation: FlowObservation) -> list[CellEvent]:
    """Notifications, primary switches and errors that the sender's socket reported."""
    events = []
    for record in observation.sender_records:
        if not isinstance(record, ANNOTATED) or record.t_ns is None:
            continue
        texts = [
            f"{key} {value}" if key not in ("type", "state") else str(value)
            for key, value in msgspec.structs.asdict(record).items()
            if key not in ("t_ns", "flags") and value not in (None, 0, "")
        ]
        t_s = (record.t_ns - observation.t0_monotonic_ns) / 1e9
        kind = str(record.__struct_config__.tag)
        events.append(CellEvent(t_s, observation.flow.name, kind, ", ".join(texts)))
    return events


def _heartbeats(observation: FlowObservation) -> list[CellEvent]:
    """SCTP heartbeats and their answers at the sender, from the fault to 10 s after the repair; at most 60."""
    flow, sender, fault = observation.flow, observation.sender, observation.moments.fault
    if sender is None or fault is None or flow.protocol != "sctp":
        return []
    chunks = sender.point.capture.chunks
    rows = chunks[np.isin(chunks["type"], (HEARTBEAT, HEARTBEAT_ACK))]
    t_ns = rows["time_ns"] - sender.t0_realtime_ns
    until = (fault.to_ns if fault.to_ns is not None else fault.from_ns) + AFTER_REPAIR_NS
    events: list[CellEvent] = []
    for at, row in zip(t_ns.tolist(), rows, strict=True):
        sends = sender.data_direction.get(int(row["flow"]))
        if sends is None or not fault.from_ns <= at <= until or len(events) == HEARTBEATS_SHOWN:
            continue
        node = flow.sender if row["direction"] == sends else flow.receiver
        path = observation.path_names[sender.path_index[int(row["path"])]]
        kind = "heartbeat ack" if row["type"] == HEARTBEAT_ACK else "heartbeat"
        events.append(CellEvent(at / 1e9, flow.name, kind.replace(" ", "_"), f"{kind} from {node} on {path}"))
    return events
