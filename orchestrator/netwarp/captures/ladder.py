"""The ladder (sequence diagram) of a connection: each of its packets in one row, and notes between them.

Rows that matter stand alone: handshake, retransmissions, timers, silences, path changes, ICMP, the end. Runs of data
and their acknowledgements are one row with counts. Beyond a number of rows what matters least is folded too, and
counted.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.numbers import in_short
from ..core.units import counted
from .capture import Capture
from .connection import Connection
from .course import STALL_S, course
from .native import Bools, Ints
from .packet_rows import ACK, AGAIN, BEAT, CONTROL, DATA, PROBE, PacketRows, sctp_rows, tcp_rows

if TYPE_CHECKING:
    from .summary import FileSummary

MOST_ROWS = 40
SHORT = 2
"""A run of so many packets is shown packet by packet."""
KINDS = {CONTROL: "control", AGAIN: "again", PROBE: "probe", DATA: "data", BEAT: "heartbeat", ACK: "acknowledgement"}
SAID = {
    CONTROL: ("packet of the handshake or the end", "of the handshake or the end"), AGAIN: ("sent again", "sent again"),
    PROBE: ("probe", "probes"), DATA: ("of data", "of data"), BEAT: ("heartbeat", "heartbeats"),
    ACK: ("acknowledgement", "acknowledgements"),
}  # fmt: skip
WEIGHTS = {CONTROL: 100.0, AGAIN: 60.0, PROBE: 60.0, DATA: 6.0, BEAT: 3.0, ACK: 4.0}
"""What a row is worth where there are too many. Below FOLDED runs are folded in any ladder."""
NAMED, FOLDED = 5.0, 40.0
TIMER, LOOSE, NOTED, QUIET = 90.0, 70.0, 80.0, 75.0
NEXT_TO_A_NOTE = 50.0
LONGEST = 8
"""So many silences matter."""
USUAL_TIMES = 3
"""A silence is so many times as long as the usual time between two packets of one end, at least."""
NAMES_SHOWN = 3


@dataclasses.dataclass(frozen=True)
class LadderRow:
    """A row. t_s, until_s: of its first and last packet, s from the capture's first packet. kind: packet, fold (a run
    of packets), or note (no packet). what: the kind of the packet or note, for its look. lane: place of its path among
    the ladder's; None: of several, or none. direction: 0 from the left end, 1 from the right one; None: both, or a
    note. frames: numbers of the first and last packet as tshark counts. counts: packets by kind.
    """

    t_s: float
    until_s: float
    kind: str
    what: str
    text: str
    lane: int | None = None
    direction: int | None = None
    packets: int = 0
    frames: tuple[int, int] | None = None
    counts: Mapping[str, int] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Ladder:
    """The ladder of a connection. lanes: its paths, the addresses of the left end first. lacks: what the capture has
    not of it, in words.
    """

    protocol: str
    ends: tuple[str, str]
    point: str
    lanes: tuple[str, ...]
    rows: tuple[LadderRow, ...]
    lacks: tuple[str, ...] = ()

    @property
    def packets(self) -> int:
        """Packets of all rows."""
        return sum(row.packets for row in self.rows)


@dataclasses.dataclass(frozen=True)
class _Note:
    time_s: float
    weight: float
    what: str
    text: str
    lane: int | None = None

    @property
    def is_late(self) -> bool:
        """Whether it stands behind the packet of its instant, not before it."""
        return self.what in ("silence", "unanswered")


def ladder(file: FileSummary, connection: Connection, most: int | None = MOST_ROWS) -> Ladder:
    """The ladder of a connection whose rows are in memory; of a subflow of MPTCP that of all subflows together. most:
    rows, at most; None: no bound.
    """
    multi = next((each for each in file.multipath if connection.number in each.flows and len(each.flows) > 1), None)
    if multi is not None:
        members = [int(file.connections.rows[number - 1]) for number in multi.flows]
        names = [str(row["subflow"]).replace(">", " > ") for row in multi.tables["subflows"]]
        first = file.connections[multi.flows[0] - 1]
        packets = tcp_rows(file.capture, members, _turned(file, members))
        notes = _multipath_notes(multi.events, [str(row["subflow"]) for row in multi.tables["subflows"]])
        for place, number in enumerate(multi.flows):
            notes += [
                dataclasses.replace(note, lane=place) for note in _notes(file.connections[number - 1], {}, file.capture)
            ]
        rows = _rows(packets, notes, first, file, most)
        return Ladder("mptcp", first.ends, file.name, tuple(names), rows, tuple(_lacks(first, packets)))
    if connection.protocol == "sctp":
        packets, paths = sctp_rows(file.capture, connection.row)
    else:
        packets, paths = (
            tcp_rows(file.capture, [connection.row], [0]),
            [int(file.capture.flows["path"][connection.row])],
        )
    lanes = [_lane(file.capture, connection, path) for path in paths]
    places = {name.replace(" > ", ">"): place for place, name in enumerate(lanes)}
    notes = _notes(connection, places, file.capture)
    rows = _rows(packets, notes, connection, file, most)
    lacks = tuple(_lacks(connection, packets))
    return Ladder(connection.protocol, connection.ends, file.name, tuple(lanes), rows, lacks)


def _lacks(connection: Connection, packets: PacketRows) -> Iterator[str]:
    """What a reader would look for, and the capture does not have."""
    if (unseen := connection.facts["unseen_end"]) is not None:
        yield f"no packet of {connection.ends[unseen]} is in the capture"
    if len(packets.kind) and packets.kind[0] != CONTROL:
        yield "the capture begins after the handshake"


def _turned(file: FileSummary, members: Sequence[int]) -> list[int]:
    from .mptcp.subflows import subflow_groups

    for group in subflow_groups(file.capture):
        if group.flows[0] in members:
            turned = dict(zip(group.flows, group.turned, strict=True))
            return [turned[flow] for flow in members]
    return [0] * len(members)


def _lane(capture: Capture, connection: Connection, path: int) -> str:
    used = capture.flow_paths
    row = used[(used["flow"] == connection.row) & (used["path"] == path)][0]
    end = int(row["path_direction"])
    return f"{capture.address(path, end)} > {capture.address(path, 1 - end)}"


def _notes(connection: Connection, places: Mapping[str, int], capture: Capture) -> list[_Note]:
    """What the connection's events tell beside its packets: the facts of `explain` and `analyze`."""
    ends, way = connection.ends, int(connection.totals.get("data_direction") or 0)
    notes = []
    for event in connection.events:
        t_s = float(event["t_s"])
        lane = places.get(str(event.get("path")), 0 if len(places) == 1 else None)
        who = str(event.get("data_of", ends[way]))
        if isinstance(event.get("direction"), int):
            who = ends[int(event["direction"])]
        found = _note_text(event, who, connection.protocol)
        if found is not None:
            weight, what, text = found
            notes.append(_Note(t_s, weight, what, text, lane))
    return notes


def _note_text(event: Mapping[str, Any], who: str, protocol: str) -> tuple[float, str, str] | None:
    waited = event.get("waited_s")
    match event["what"]:
        case "T3 expiry":
            return TIMER, "timer", f"T3 of {who} expires"
        case "timeout":
            return TIMER, "timer", f"retransmission timer of {who} expires, {in_short(waited, 's')} after the data"
        case "tail_loss_probe":
            return LOOSE, "timer", f"tail loss probe of {who}, {in_short(waited, 's')} after the data"
        case "fast_retransmission":
            return LOOSE, "again", f"fast retransmission of {who}"
        case "outage begins":
            length = event["duration_s"]
            for_s = "any more" if length is None else f"for {in_short(length, 's')}"
            return NOTED, "silence", f"from here on nothing that {who} sends is acknowledged {for_s}"
        case "new data on another path" | "new data returns to its first path":
            return 100.0, "path", f"new data moves from {_way(event['before'])} to {_way(event['path'])}"
        case "restart":
            return 100.0, "path", f"restarts the association of flow {event['restart_of']}"
        case "icmp":
            size = f", at most {event['mtu_bytes']} B" if "mtu_bytes" in event else ""
            return 95.0, "icmp", f"ICMP of {event['from']} to {who}: {event['error']}{size}"
        case "zero_window":
            length = event["for_s"]
            for_s = "to its last packet" if length is None else f"for {in_short(length, 's')}"
            return NOTED, "window", f"the receive window of {who} is closed {for_s}"
        case "unanswered HEARTBEAT":
            return LOOSE, "unanswered", f"no answer to this HEARTBEAT on {_way(event['path'])}"
        case "pause":
            return LOOSE, "silence", f"{who} has nothing to send for {in_short(event['for_s'], 's')}"
    return None


def _multipath_notes(events: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[_Note]:
    said = {"first new data", "last new data", "first reinjection"}
    notes = []
    for event in events:
        what, subflow = str(event["what"]), str(event.get("subflow"))
        if what in said:
            lane = names.index(subflow) if subflow in names else None
            number = "" if lane is None else f" of subflow {lane + 1}"
            notes.append(_Note(float(event["t_s"]), 100.0, "path", f"{what}{number}", lane))
    return notes


def _way(path: object) -> str:
    return str(path).replace(">", " > ")


def _rows(
    packets: PacketRows, notes: Sequence[_Note], connection: Connection, file: FileSummary, most: int | None
) -> tuple[LadderRow, ...]:
    times = (packets.time_ns - file.first_ns) / 1e9
    weights = np.array([WEIGHTS[kind] for kind in range(len(WEIGHTS))])[packets.kind]
    weights = weights + np.where(packets.named, NAMED, 0.0)
    notes = [*notes, *_silences(times, packets.direction, connection)]
    notes.sort(key=lambda note: note.time_s)
    at = np.array([note.time_s for note in notes])
    late = np.array([note.is_late for note in notes], dtype=np.bool_)
    place = np.where(late, np.searchsorted(times, at + 5e-10, "right"), np.searchsorted(times, at - 5e-10, "left"))
    for moment in course(connection):
        weights[np.searchsorted(times, moment.t_s - 5e-10).clip(0, max(len(times) - 1, 0)) :][:1] += NEXT_TO_A_NOTE
    for beside in (place - 1, place):
        inside = beside[(beside >= 0) & (beside < len(times))]
        weights[inside] = np.maximum(weights[inside], NEXT_TO_A_NOTE)
    # all in one order: packets and notes
    of_note = np.concatenate([np.full(len(times), -1), np.arange(len(notes))])
    value = np.concatenate([weights, [note.weight for note in notes]])
    key = np.concatenate([np.arange(len(times)) * 2 + 1, place * 2])
    order = np.argsort(key, kind="stable")
    items = _Items(packets, times, notes, of_note[order], np.where(of_note[order] < 0, order, -1), value[order])
    return items.rows(items.chosen(most))


def _silences(times: Any, direction: Ints, connection: Connection) -> Iterator[_Note]:
    """The longest times without a packet, and the one to the capture's end."""
    gaps = np.diff(times)
    of_ends = [np.diff(times[direction == end]) for end in (0, 1)]
    usual = max((float(np.median(each)) for each in of_ends if len(each)), default=0.0)
    places = np.flatnonzero(gaps >= max(STALL_S, USUAL_TIMES * usual))
    longest = set(places[np.argsort(-gaps[places], kind="stable")][:LONGEST].tolist())
    for place in places.tolist():
        weight = QUIET if place in longest else FOLDED - 1
        yield _Note(float(times[place]), weight, "silence", f"{in_short(float(gaps[place]), 's')} without a packet")
    if len(times) and connection.capture_s - times[-1] >= STALL_S:
        text = f"no packet for {in_short(float(connection.capture_s - times[-1]), 's')}, to the capture's end"
        yield _Note(float(times[-1]), QUIET, "silence", text)


@dataclasses.dataclass(frozen=True)
class _Items:
    """Packets and notes in order. note, packet: index of the one or the other, or -1; value: what it is worth."""

    packets: PacketRows
    times: Any
    notes: Sequence[_Note]
    note: Ints
    packet: Ints
    value: Any

    def chosen(self, most: int | None) -> Bools:
        """Items with a row of their own: with the gaps between them at most `most` rows."""
        matters: Bools = self.value >= FOLDED
        if most is None:
            return matters
        by_value = np.argsort(-self.value, kind="stable")
        low, high = 1, min(len(by_value), most)
        while low < high:  # the most items that fit
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self._count(self._of(by_value, middle)) <= most else (low, middle - 1)
        return self._of(by_value, low)

    @staticmethod
    def _of(by_value: Ints, count: int) -> Bools:
        mask = np.zeros(len(by_value), dtype=np.bool_)
        mask[by_value[:count]] = True
        return mask

    def _count(self, mask: Bools) -> int:
        return int(mask.sum()) + sum(1 if end - begin > SHORT else end - begin for begin, end in _runs(~mask))

    def rows(self, mask: Bools) -> tuple[LadderRow, ...]:
        """The rows."""
        runs = dict(_runs(~mask))
        rows: list[LadderRow] = []
        at = 0
        while at < len(mask):
            end = runs.get(at)
            if end is not None and end - at > SHORT:
                rows.append(self._fold(at, end))
                at = end
            else:
                rows.append(self._single(at))
                at += 1
        return tuple(rows)

    def _single(self, at: int) -> LadderRow:
        if self.note[at] >= 0:
            note = self.notes[int(self.note[at])]
            return LadderRow(note.time_s, note.time_s, "note", note.what, note.text, note.lane)
        row, packets = int(self.packet[at]), self.packets
        time_s, frame, kind = float(self.times[row]), int(packets.frame[row]), int(packets.kind[row])
        return LadderRow(
            time_s, time_s, "packet", packets.look(row), packets.text(row), int(packets.lane[row]),
            int(packets.direction[row]), 1, (frame, frame), {KINDS[kind]: 1},
        )  # fmt: skip

    def _fold(self, at: int, end: int) -> LadderRow:
        mine = self.packet[at:end]
        mine = mine[mine >= 0]
        notes = [self.notes[number] for number in self.note[at:end].tolist() if number >= 0]
        by_kind = sorted(Counter(self.packets.kind[mine].tolist()).items())
        counts = {KINDS[kind]: count for kind, count in by_kind}
        parts = [counted(count, *SAID[kind]) for kind, count in by_kind]
        parts += self.packets.names(mine, NAMES_SHOWN)
        said = Counter(note.what for note in notes)
        for what, one, several in (
            ("timer", "timer expires", "timers expire"), ("icmp", "ICMP error", "ICMP errors"),
            ("path", "change of path", "changes of path"), ("window", "closed window", "closed windows"),
            ("silence", "silence", "silences"), ("again", "fast retransmission", "fast retransmissions"),
            ("unanswered", "HEARTBEAT without answer", "HEARTBEATs without answer"),
        ):  # fmt: skip
            if said[what]:
                parts.append(counted(said[what], one, several))
        look = "again" if AGAIN in self.packets.kind[mine] or said["timer"] else "run"
        if not len(mine):
            time_s = notes[0].time_s
            return LadderRow(time_s, notes[-1].time_s, "note", look, "; ".join(parts))
        lanes, ways = set(self.packets.lane[mine].tolist()), set(self.packets.direction[mine].tolist())
        text = f"{counted(len(mine), 'packet')}: {', '.join(parts)}"
        return LadderRow(
            float(self.times[mine[0]]), float(self.times[mine[-1]]), "fold", look, text,
            lanes.pop() if len(lanes) == 1 else None, ways.pop() if len(ways) == 1 else None, len(mine),
            (int(self.packets.frame[mine[0]]), int(self.packets.frame[mine[-1]])), counts,
        )  # fmt: skip


def _runs(mask: Bools) -> list[tuple[int, int]]:
    """Begin and end of each run of True."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8)))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))
