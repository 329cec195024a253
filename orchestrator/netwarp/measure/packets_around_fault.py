"""Writes derived/exchange.json: the packets of a flow around the moments of its first fault, at both hosts.

Event tables are cut from it. At most MOST_PACKETS on either side of each moment.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from ..captures.native import NONE, UNKNOWN, Ints
from ..core.outputs import MOST_PACKETS
from ..core.types import Flow
from ..core.wire import DATA, FIN, HEARTBEAT, HEARTBEAT_ACK, I_DATA, RST, SYN, chunk_name
from ..store.derived import NearPacket
from .flow_packets import FlowPackets
from .observation import FlowObservation, Moments, first_ns
from .planned_paths import Fault
from .sent_data import arrival_of_first_sent_since, data_units, same_connections

FLAGS = ((SYN, "SYN"), (FIN, "FIN"), (RST, "RST"))


@dataclasses.dataclass(frozen=True)
class _Seen:
    """A packet as one host saw it. row: its row in that host's packet table."""

    t_ns: int
    end: FlowPackets
    row: int
    at_sender: bool


def moments_ns(flow: Flow, sender: FlowPackets, receiver: FlowPackets, moments: Moments) -> dict[str, int]:
    """Moment (outputs.MOMENTS) -> ns from T0; those that did not happen are left out."""
    fault, path = moments.fault, moments.hit_path
    if fault is None:
        return {}
    times: dict[str, int | None] = {"fault": fault.from_ns, "repair": fault.to_ns}
    sent, arrived = sender.data, receiver.data
    times["first_retransmission"] = first_ns(sent.t_ns, sent.retransmission & (sent.t_ns >= fault.from_ns))
    if path is None:
        return {name: at for name, at in times.items() if at is not None}
    since = sent.t_ns >= fault.from_ns
    times["first_other_path"] = first_ns(sent.t_ns, since & (sent.payload_bytes > 0) & (sent.path != path))
    there = (arrived.payload_bytes > 0) & (arrived.path != path) & (arrived.t_ns >= fault.from_ns)
    times["first_arrival_other_path"] = arrival_of_first_sent_since(
        sender, receiver, flow.protocol, there, fault.from_ns
    )
    if fault.to_ns is not None:
        back = (sent.path == path) & (sent.t_ns >= fault.to_ns) & (sent.payload_bytes > 0)
        times["first_on_repaired_path"] = first_ns(sent.t_ns, back)
        came = (arrived.path == path) & (arrived.t_ns > fault.to_ns) & (arrived.payload_bytes > 0)
        times["first_arrival_on_repaired_path"] = first_ns(arrived.t_ns, came)
        times |= _heartbeat(flow, sender, path, fault)
    return {name: at for name, at in times.items() if at is not None}


def _heartbeat(flow: Flow, sender: FlowPackets, path: int, fault: Fault) -> dict[str, int | None]:
    """The first heartbeat answered on the repaired path, sent by either end, as the flow's sender sees it."""
    if flow.protocol != "sctp" or fault.to_ns is None:
        return {}
    chunks = sender.point.capture.chunks
    rows = chunks[np.isin(chunks["type"], (HEARTBEAT, HEARTBEAT_ACK))]
    asked: dict[tuple[int, int], int] = {}
    for row in rows:
        at, way, said = int(row["time_ns"]) - sender.t0_realtime_ns, int(row["direction"]), int(row["message"])
        if int(row["flow"]) not in sender.data_direction or sender.path_index[int(row["path"])] != path:
            continue
        if row["type"] == HEARTBEAT:
            asked[way, said] = at
        elif at >= fault.to_ns and (1 - way, said) in asked:  # the answer repeats what it answers
            return {"heartbeat": asked[1 - way, said], "heartbeat_ack": at}
    return {}


def packets_around_fault(observation: FlowObservation) -> list[NearPacket]:
    """Rows sorted by time. `moments`: the moments that a row is near, each with its position before (-1 is the last one
    before) or after (0 is the first one at or after). The timeline's events are rows too.
    """
    flow, sender, receiver, names = (
        observation.flow, observation.sender, observation.receiver, observation.path_names,
    )  # fmt: skip
    if sender is None or receiver is None or flow.protocol == "mptcp":
        return []
    at = moments_ns(flow, sender, receiver, observation.moments)
    (here_ns, here), (there_ns, there) = _seen(sender), _seen(receiver)
    times, rows = np.concatenate([here_ns, there_ns]), np.concatenate([here, there])
    order = np.argsort(times, kind="stable")
    near: defaultdict[int, dict[str, int]] = defaultdict(dict)
    for name, moment in at.items():
        middle = int(np.searchsorted(times, moment, side="left", sorter=order))
        for number in range(max(0, middle - MOST_PACKETS), min(len(times), middle + MOST_PACKETS)):
            near[number][name] = number - middle
    packets = []
    for number in sorted(near):
        index = int(order[number])
        at_sender = index < len(here)
        seen = _Seen(int(times[index]), sender if at_sender else receiver, int(rows[index]), at_sender)
        packets.append(_describe(seen, flow, names, near[number], sender, receiver))
    for event in observation.cell.timeline:
        close = {name: 0 for name, moment in at.items() if moment == event.at_ns}
        packets.append(
            NearPacket(
                t_s=event.at_ns / 1e9,
                event=event.action,
                node="",
                link=event.link,
                path="",
                type=event.name,
                number=None,
                bytes=None,
                note=event.directions[0] if len(event.directions) == 1 else "",
                moments=close,
            )
        )
    return sorted(packets, key=lambda row: (row.t_s, bool(row.node)))


def _seen(end: FlowPackets) -> tuple[Ints, Ints]:
    """The time at which each packet of the flow was seen, ns from T0, and its row in the capture."""
    packets = end.point.capture.packets
    rows = np.flatnonzero(np.isin(packets["flow"], np.fromiter(end.data_direction, np.uint32)))
    return packets["time_ns"][rows] - end.t0_realtime_ns, rows


def _describe(
    seen: _Seen, flow: Flow, names: Sequence[str], near: dict[str, int], sender: FlowPackets, receiver: FlowPackets
) -> NearPacket:
    packet = seen.end.point.capture.packets[seen.row]
    from_sender = int(packet["direction"]) == seen.end.data_direction[int(packet["flow"])]
    path = seen.end.path_index[int(packet["path"])]
    kind, number = _content(seen, flow)
    notes = ["again"] if packet["is_retransmission"] else []
    if from_sender and seen.at_sender and packet["payload_bytes"] and number is not None:
        notes += [] if _arrives(seen, flow, number, path, sender, receiver) else ["lost"]
    return NearPacket(
        t_s=seen.t_ns / 1e9,
        event="sent" if from_sender == seen.at_sender else "arrives",
        node=flow.sender if seen.at_sender else flow.receiver,
        link=seen.end.point.links[int(packet["source"])],
        path=names[path],
        type=kind,
        number=number,
        bytes=int(packet["ip_bytes"]),
        note=" ".join(notes),
        moments=near,
    )


def _content(seen: _Seen, flow: Flow) -> tuple[str, int | None]:
    """The kind of the packet, and its TSN, cumulative TSN, sequence or acknowledgement number (relative)."""
    capture = seen.end.point.capture
    if flow.protocol == "sctp":
        chunks = capture.chunks[capture.chunks["packet"] == seen.row]
        kinds = [chunk_name(int(kind)) for kind in chunks["type"]]
        kind_text = " + ".join(f"{n} {kind}" if (n := kinds.count(kind)) > 1 else kind for kind in dict.fromkeys(kinds))
        data = chunks["tsn"][(chunks["type"] == DATA) | (chunks["type"] == I_DATA)]
        if len(data):
            return kind_text, _known(int(data[0]))
        sacks = capture.sacks["cumulative_tsn"][capture.sacks["packet"] == seen.row]
        return kind_text, _known(int(sacks[0])) if len(sacks) else None
    segments = capture.segments[capture.segments["packet"] == seen.row]
    if not len(segments):
        return "", None
    segment = segments[0]
    kind_text = " ".join(word for bit, word in FLAGS if segment["flags"] & bit)
    if segment["payload_bytes"]:
        return f"{kind_text} data".strip(), _known(int(segment["seq"]))
    return kind_text or "ack", _known(int(segment["ack"]))


def _known(number: int) -> int | None:
    return None if number == UNKNOWN else number


def _arrives(seen: _Seen, flow: Flow, number: int, path: int, sender: FlowPackets, receiver: FlowPackets) -> bool:
    """True if this transmission of a number reached the other end on its path. Copies keep their order, and the arrived
    ones are the latest sent before each arrival.
    """
    here = int(seen.end.point.capture.packets["flow"][seen.row])
    there = next((row for row, its in same_connections(sender, receiver).items() if its == here), NONE)
    sent, came = _copies(sender, flow, here, number, path), _copies(receiver, flow, there, number, path)
    taken: set[int] = set()
    for arrival in reversed(came):
        before = [at for at in sent if at < arrival and at not in taken]
        if before:
            taken.add(before[-1])
    return seen.t_ns in taken


def _copies(end: FlowPackets, flow: Flow, connection: int, number: int, path: int) -> list[int]:
    """The times (ns from T0) at which packets of a connection with this number passed on a path."""
    table, column = data_units(end, flow.protocol)
    rows = table[(table[column] == number) & (table["flow"] == connection)]
    return [int(row["time_ns"]) - end.t0_realtime_ns for row in rows if end.path_index[int(row["path"])] == path]
