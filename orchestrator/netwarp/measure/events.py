"""What happened, as a list for the report: the timeline, the transport's moments, what the sender's socket said."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.numbers import fixed
from ..core.types import Cell, Flow
from ..core.wire import HEARTBEAT, HEARTBEAT_ACK
from ..store.ndjson import Record, last
from .flow_packets import FlowPackets, PathNames
from .metrics import Moments

HEARTBEATS_SHOWN = 60
AFTER_REPAIR_NS = 10_000_000_000
ANNOTATED = ("notification", "switch_primary", "gave_up", "error")

Happening = dict[str, Any]


def timeline_events(cell: Cell) -> list[Happening]:
    """The spec's own events, at the times they were set for."""
    return [
        {
            "t_s": event.at_ns / 1e9,
            "flow": "",
            "kind": event.action,
            "text": f"{event.action} {event.link} ({event.name}, {' and '.join(event.directions)})",
        }
        for event in cell.timeline
    ]


def moment_events(flow: Flow, moments: Moments, names: PathNames) -> list[Happening]:
    """The moments after the first fault."""
    in_use = "?" if moments.path_in_use is None else names.names[moments.path_in_use]
    since = moments.fault.from_ns if moments.fault else 0
    repaired = moments.fault.to_ns if moments.fault else None
    found = []
    for kind, at_ns, origin, text in (
        (
            "first_retransmission_other_path",
            moments.first_retransmission_other_path_ns,
            since,
            f"first retransmission on a path other than {in_use}: {{}} s after the fault (sender)",
        ),
        (
            "first_new_data_other_path",
            moments.first_new_sent_other_path_ns,
            since,
            f"first new data on a path other than {in_use}: {{}} s after the fault (sender)",
        ),
        (
            "failover",
            moments.first_new_arrival_other_path_ns,
            since,
            f"first new payload arrives on a path other than {in_use}: {{}} s after the fault (receiver)",
        ),
        (
            "first_new_data_after_repair",
            moments.first_new_after_repair_ns,
            repaired,
            "first new data arrives {} s after the repair (receiver)",
        ),
    ):
        if at_ns is not None and origin is not None:
            found.append(
                {
                    "t_s": at_ns / 1e9,
                    "flow": flow.name,
                    "kind": kind,
                    "text": text.format(fixed((at_ns - origin) / 1e9, 6)),
                }
            )
    return found


def outage_event(flow: Flow, gap: tuple[int, int] | None) -> list[Happening]:
    """The longest gap that touches a fault."""
    if gap is None:
        return []
    text = f"no new payload arrives for {fixed((gap[1] - gap[0]) / 1e9, 6)} s"
    return [{"t_s": gap[0] / 1e9, "flow": flow.name, "kind": "outage", "text": text}]


def socket_events(flow: Flow, records: list[Record], t0_monotonic_ns: int) -> list[Happening]:
    """Notifications, primary switches and errors as the sender's socket gave them."""
    found = []
    for record in records:
        kind = record.get("record")
        if kind not in ANNOTATED or not isinstance(record.get("t_ns"), int):
            continue
        told = [
            f"{key} {value}" if key not in ("type", "state") else str(value)
            for key, value in record.items()
            if key not in ("record", "t_ns", "flags") and value not in (None, 0, "")
        ]
        found.append(
            {
                "t_s": (record["t_ns"] - t0_monotonic_ns) / 1e9,
                "flow": flow.name,
                "kind": str(kind),
                "text": ", ".join(told),
            }
        )
    return found


def gave_up_s(flow: Flow, records: list[Record], t0_monotonic_ns: int) -> float | None:
    """From the flow's start to the moment its sender's kernel gave the connection up; None: it did not."""
    record = last(records, "gave_up")
    return None if record is None else (record["t_ns"] - t0_monotonic_ns - flow.start_ns) / 1e9


def heartbeat_events(flow: Flow, sender: FlowPackets, moments: Moments, names: PathNames) -> list[Happening]:
    """SCTP heartbeats and their answers at the sender, from the fault until 10 s after the repair; at most 60."""
    fault = moments.fault
    if fault is None or flow.protocol != "sctp":
        return []
    chunks = sender.point.capture.chunks
    rows = chunks[np.isin(chunks["type"], (HEARTBEAT, HEARTBEAT_ACK))]
    t_ns = rows["time_ns"] - sender.t0_realtime_ns
    until = (fault.to_ns if fault.to_ns is not None else fault.from_ns) + AFTER_REPAIR_NS
    found: list[Happening] = []
    for at, row in zip(t_ns.tolist(), rows, strict=True):
        sends = sender.data_direction.get(int(row["flow"]))
        if sends is None or not fault.from_ns <= at <= until or len(found) == HEARTBEATS_SHOWN:
            continue
        answer = row["type"] == HEARTBEAT_ACK
        who = flow.sender if row["direction"] == sends else flow.receiver
        path = names.names[sender.path_index[int(row["path"])]]
        text = f"{'heartbeat ack' if answer else 'heartbeat'} from {who} on {path}"
        kind = "heartbeat_ack" if answer else "heartbeat"
        found.append({"t_s": at / 1e9, "flow": flow.name, "kind": kind, "text": text})
    return found
