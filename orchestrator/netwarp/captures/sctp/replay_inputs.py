"""Inputs for the replay of a captured association in a cell: its paths, its messages, the losses of the network."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from ...core.errors import CaptureError
from ...core.wire import INIT, INIT_ACK, SHUTDOWN
from ..capture import Capture, address_text, read_captures
from ..hop_joins import NOWHERE, match_packets
from ..native import Ints, Rows
from .association import Association
from .message_pattern import due_times
from .network_evidence import NEAR_NS, Packet, Way, inferred, of_both_ends, way

END_NAMES = ("a", "b")
"""Of the initiator and the other end, as in `netwarp sctp check A B`."""
USUAL_MTU = 1500
LEAST_RATE_PAIRS = 5
HELD_NS = 100_000
"""A message that goes so soon after an acknowledgement or a retransmission waited for it. Where the messages have no
pattern, it is taken as due twice as long before.
"""


SETTLING_MESSAGES, SETTLING_GAP_NS, SETTLED_NS = 4, 700_000_000, 2_000_000_000
"""Of an association that was up before the capture: messages before it, so far apart, and the time before and after."""
SEVERAL_PATHS_NS = 8_000_000_000
"""So much later where paths are to be confirmed."""


@dataclasses.dataclass(frozen=True)
class View:
    """An association at one capture point: the capture, and its row in the table of flows."""

    capture: Capture
    flow: int


@dataclasses.dataclass(frozen=True)
class SeenPath:
    """A path: its addresses (of a, of b), shortest round trip, rate (bit/s; None: not seen), and both directions."""

    addresses: tuple[str, str]
    round_trip_ns: int
    rate_bit_s: float | None
    ways: tuple[Way, Way]

    @property
    def family(self) -> str:
        """As a spec says it."""
        return "ipv6" if ":" in self.addresses[0] else "ipv4"


@dataclasses.dataclass(frozen=True)
class SeenMessage:
    """A message: when its first chunk was first sent, when it is taken to have been due, and its size and stream. held:
    an acknowledgement or a timer let it go, so it was due earlier, by the pattern of the messages if they have one.
    """

    time_ns: int
    due_ns: int
    size: int
    stream: int
    held: bool


@dataclasses.dataclass(frozen=True)
class SeenHeartbeat:
    """A HEARTBEAT: when its sender sent it, and the number of its path (of ReplayInputs.paths)."""

    time_ns: int
    path: int


@dataclasses.dataclass(frozen=True)
class ReplayInputs:
    """Times: ns, by the clock of the capture at `end` (0: a, 1: b); begin_ns, end_ns: of that capture; start_ns: when a
    sent its first INIT, or, if the capture begins later (`begun`: False), so long before it that a cell's association
    is up and has measured its round trips. messages, heartbeats, payload_protocol, unordered, nodelay: by end.
    seen_from: of each end's data, whether it was captured at its sender. views: by end. closing: when an end closed the
    association, which, and whether in order; None: the capture ends before, or the transport gave up.
    """

    end: int
    begin_ns: int
    end_ns: int
    start_ns: int
    ports: tuple[int, int]
    mtu: int
    paths: tuple[SeenPath, ...]
    messages: tuple[tuple[SeenMessage, ...], tuple[SeenMessage, ...]]
    heartbeats: tuple[tuple[SeenHeartbeat, ...], tuple[SeenHeartbeat, ...]]
    payload_protocol: tuple[int, int]
    unordered: tuple[bool, bool]
    nodelay: tuple[bool, bool]
    seen_from: tuple[bool, bool]
    views: Mapping[int, View]
    closing: tuple[int, int, bool] | None
    begun: bool = True

    @property
    def settling_ns(self) -> tuple[int, ...]:
        """When messages go after the start that the capture does not have: of an association that was up before it, so
        that a cell has measured its round trips by then.
        """
        if self.begun:
            return ()
        trip_ns = max(path.round_trip_ns for path in self.paths)
        first_ns = SETTLED_NS + 3 * trip_ns
        return tuple(first_ns + number * max(2 * trip_ns, SETTLING_GAP_NS) for number in range(SETTLING_MESSAGES))

    @property
    def held(self) -> int:
        """Messages that were due before they were sent, and no pattern says when."""
        every = [message for messages in self.messages for message in messages]
        return sum(message.held and message.time_ns - message.due_ns == 2 * HELD_NS for message in every)

    @property
    def by_pattern(self) -> int:
        """Messages that were sent later than the pattern of their end's messages has them."""
        every = [message for messages in self.messages for message in messages]
        return sum(message.time_ns - message.due_ns > 2 * HELD_NS for message in every)


def replay_inputs(views: Sequence[View]) -> ReplayInputs:
    """From the captures of one association at one or both ends. Raises CaptureError: none is at an end, or the paths
    are none that a cell can have.
    """
    sides: dict[int, tuple[View, tuple[Association, Association]]] = {}
    for view in views:
        both = Association(view.capture, view.flow, direction=0), Association(view.capture, view.flow, direction=1)
        for end in (0, 1):
            if both[end].point == "sender":
                sides.setdefault(end, (view, both))
    if not sides:
        raise CaptureError(
            "the capture was taken at neither end, or holds no handshake that tells where: what each end sent when, "
            "and what was lost, is known at an end only. Where you know the end that captured, say its address: "
            "--captured-at ADDRESS"
        )
    here = max(sides, key=lambda end: (int(_user_bytes(sides[end][1][end])), -end))
    view, both = sides[here]
    mine = both[here]
    paths = _paths(mine)
    round_trips = _round_trips(mine, paths)
    begun = bool(len(mine.columns.of_type(INIT, INIT_ACK)))
    other = sides.get(1 - here) if begun else None
    ahead_ns = 0
    packets: dict[tuple[int, int], list[Packet]] = {}
    rates: dict[int, float | None] = {}
    if other is not None:
        joined = _joined(view, other[0], paths, both, other[1], here)
        if joined is None:
            other = None
        else:
            ahead_ns, round_trips, packets, rates = joined
    if other is None:
        packets = inferred(mine, round_trips)
    messages = [_messages(mine, here, round_trips, 0), ()]
    if other is None:
        messages[1] = _messages(both[1 - here], here, round_trips, 0)
    else:
        messages[1] = _messages(other[1][1 - here], 1 - here, round_trips, ahead_ns)
    trips = [round_trips[path] for path in paths]
    numbers = _numbers(view.capture, view.capture, paths)
    beats = [_heartbeats(mine, here, numbers, ()), ()]
    if other is None:
        beats[1] = _heartbeats(mine, 1 - here, numbers, trips)
    else:
        numbers = _numbers(view.capture, other[0].capture, paths)
        beats[1] = _heartbeats(other[1][1 - here], 1 - here, numbers, (), ahead_ns)
    if here:
        messages.reverse()
        beats.reverse()
    sizes = view.capture.packets
    largest = int(sizes["ip_bytes"][sizes["flow"] == view.flow].max())
    fragments = max((int(one.messages.fragments.max(initial=1)) for one in both), default=1)
    row = mine.row
    inputs = ReplayInputs(
        end=here,
        begin_ns=int(row["first_ns"]),
        end_ns=int(row["last_ns"]),
        start_ns=int(row["first_ns"]) - (round_trips[paths[0]] // 2 if here else 0),
        ports=(int(row["port"][0]), int(row["port"][1])),
        mtu=largest if largest > USUAL_MTU or fragments > 1 else USUAL_MTU,
        paths=tuple(
            SeenPath(
                (mine.capture.address(path, _end(mine, path, 0)), mine.capture.address(path, _end(mine, path, 1))),
                round_trips[path],
                rates.get(path),
                (way(packets.get((path, 0), ())), way(packets.get((path, 1), ()))),
            )
            for path in paths
        ),
        messages=(tuple(messages[0]), tuple(messages[1])),
        heartbeats=(beats[0], beats[1]),
        payload_protocol=(_payload_protocol(both[0]), _payload_protocol(both[1])),
        unordered=(_unordered(both[0]), _unordered(both[1])),
        nodelay=(_nodelay(both[0]), _nodelay(both[1])),
        seen_from=(here == 0 or other is not None, here == 1 or other is not None),
        views={here: view} if other is None else {here: view, 1 - here: other[0]},
        closing=closing(mine),
        begun=begun,
    )
    if begun:
        return inputs
    before_ns = inputs.settling_ns[-1] + SETTLED_NS + (SEVERAL_PATHS_NS if len(paths) > 1 else 0)
    return dataclasses.replace(inputs, start_ns=inputs.start_ns - before_ns)


def _user_bytes(association: Association) -> int:
    return int(association.sent.rows["user_bytes"].sum()) if len(association.sent) else 0


def _end(association: Association, path: int, end: int) -> int:
    """Which side of a path's row an end is."""
    used = association.capture.flow_paths
    row = used[(used["flow"] == association.flow) & (used["path"] == path)][0]
    return end ^ int(row["path_direction"])


def _paths(association: Association) -> list[int]:
    """The paths with an address of their own at both ends, in the order of their first use."""
    used = association.capture.flow_paths
    used = used[used["flow"] == association.flow]
    weight = {int(row["path"]): int(row["data_chunks"].sum()) for row in used}
    order = association.paths
    taken: list[int] = []
    addresses: list[set[str]] = [set(), set()]
    for path in sorted(order, key=lambda each: -weight[each]):
        ends = [association.capture.address(path, _end(association, path, end)) for end in (0, 1)]
        if any(ends[end] in addresses[end] for end in (0, 1)):
            if weight[path]:
                raise CaptureError(
                    f"{ends[0]} > {ends[1]}: this path shares an address with another that carries data; the paths of "
                    "a cell have addresses of their own"
                )
            continue
        taken.append(path)
        for end in (0, 1):
            addresses[end].add(ends[end])
    return [path for path in order if path in taken]


def _round_trips(association: Association, paths: Sequence[int]) -> dict[int, int]:
    """The shortest round trip of each path: data, heartbeats, the handshake."""
    found: dict[int, list[int]] = {}
    rtt, beats = association.rtt, association.heartbeats
    for path, value in zip(rtt.path.tolist(), rtt.rtt_ns.tolist(), strict=True):
        found.setdefault(path, []).append(value)
    mine = (beats.direction == association.direction) & beats.answered
    for path, value in zip(beats.path[mine].tolist(), (beats.answered_ns - beats.time_ns)[mine].tolist(), strict=True):
        found.setdefault(path, []).append(value)
    if (handshake := _handshake_ns(association)) is not None:
        found.setdefault(paths[0], []).append(handshake)
    known = {path: min(values) for path, values in found.items()}
    if not known:
        raise CaptureError("no round trip was captured: neither a handshake nor data that was acknowledged")
    usual = known.get(paths[0], min(known.values()))
    return {path: known.get(path, usual) for path in paths}


def _handshake_ns(association: Association) -> int | None:
    """The round trip of the handshake. Where INIT was sent again though none was lost (as many answers came), the n-th
    answer is that to the n-th, not that to the last INIT before it.
    """
    asked, answers = (association.chunks["time_ns"][association.columns.of_type(kind)] for kind in (INIT, INIT_ACK))
    if association.direction == 0 and len(asked) == len(answers) > 1 and (answers > asked).all():
        return int((answers - asked).min())
    return None if association.handshake_ns is None else sum(association.handshake_ns)


def _numbers(capture: Capture, other: Capture, paths: Sequence[int]) -> dict[int, int]:
    """The place in `paths` (rows of a capture) of each row of another capture's paths."""
    pairs = _address_pairs(capture)
    places = {frozenset(pairs[path]): place for place, path in enumerate(paths)}
    rows = map(frozenset, _address_pairs(other))
    return {row: places[pair] for row, pair in enumerate(rows) if pair in places}


def _heartbeats(
    association: Association, end: int, numbers: Mapping[int, int], trips: Sequence[int], ahead_ns: int = 0
) -> tuple[SeenHeartbeat, ...]:
    """The HEARTBEATs of an end. numbers: of the paths, by row. trips: round trips of these, where the capture is that
    of the other end; empty: it is its own. ahead_ns: of the clock.
    """
    beats = association.heartbeats
    rows = zip(beats.time_ns.tolist(), beats.path.tolist(), beats.direction.tolist(), strict=True)
    found = [
        SeenHeartbeat(time_ns - ahead_ns - (trips[numbers[path]] // 2 if trips else 0), numbers[path])
        for time_ns, path, direction in rows
        if direction == end and path in numbers
    ]
    return tuple(sorted(found, key=lambda beat: beat.time_ns))


def _messages(association: Association, end: int, round_trips: Mapping[int, int], ahead_ns: int) -> list[SeenMessage]:
    """The messages of the data of `association`, captured at `end`. ahead_ns: of its clock."""
    found = association.messages
    chunks = association.columns
    at_sender = association.direction == end
    reports = association.reports.time_ns if at_sender else np.zeros(0, dtype=np.int64)
    repeated = association.sent.rows["time_ns"][association.sent.repeated] if at_sender else reports
    letting_go = np.sort(np.concatenate([reports, repeated]))
    sent = []
    rows = found.row
    for place, size, stream in zip(rows.tolist(), found.payload_bytes.tolist(), found.stream.tolist(), strict=True):
        time_ns, path = int(chunks["time_ns"][place]), int(chunks["path"][place])
        since = int(np.searchsorted(letting_go, time_ns, side="right")) - 1
        held = bool(since >= 0 and time_ns - int(letting_go[since]) < HELD_NS)
        if not at_sender:
            time_ns -= round_trips.get(path, next(iter(round_trips.values()))) // 2
        sent.append((time_ns - ahead_ns, int(size), int(stream), held))
    sent.sort(key=lambda each: each[0])
    due: Sequence[int] | Ints | None = due_times([time_ns for time_ns, *_ in sent], [held for *_, held in sent])
    if due is None:
        due = [time_ns - 2 * HELD_NS * held for time_ns, *_, held in sent]
    return [
        SeenMessage(time_ns, int(due_ns), size, stream, held)
        for due_ns, (time_ns, size, stream, held) in zip(due, sent, strict=True)
    ]


def _payload_protocol(association: Association) -> int:
    found = association.messages.ppid
    return int(np.bincount(found[found < 1 << 20].astype(np.int64)).argmax()) if (found < 1 << 20).any() else 0


def _unordered(association: Association) -> bool:
    found = association.messages.unordered
    return bool(len(found) and found.mean() > 0.5)


def _nodelay(association: Association) -> bool:
    """Whether it sent a small packet of new data while others were not acknowledged. True where nothing tells."""
    sent, reports = association.sent, association.reports
    if not len(sent):
        return True
    acked_at = reports.moment_of(reports.acked_by)[sent.unit]
    begins = sent.packets
    small = np.add.reduceat(sent.rows["user_bytes"], begins) < 1000
    small &= sent.new[begins]
    waits = False
    highest = np.maximum.accumulate(acked_at)
    for begin in begins[small].tolist():
        if begin and highest[begin - 1] > sent.moment[begin] and sent.moment[begin - 1] < sent.moment[begin]:
            return True
        waits = waits or begin > 0
    return not waits


def closing(association: Association) -> tuple[int, int, bool] | None:
    """When an end closed the association, which, and whether in order; None: none did."""
    shutdowns = association.chunks[association.columns.of_type(SHUTDOWN)]
    found = [
        (int(row["time_ns"]), int(row["direction"]), in_order)
        for rows, in_order in ((association.aborts(asked_for=True), False), (shutdowns, True))
        for row in rows
    ]
    return min(found, default=None)


def _joined(
    view: View, other: View, paths: Sequence[int], both: Sequence[Association], theirs: Sequence[Association], here: int
) -> tuple[int, dict[int, int], dict[tuple[int, int], list[Packet]], dict[int, float | None]] | None:
    """Packets known at both ends: by how much the other clock is ahead (if the shortest ways there and back take
    equally long), round trips, packets, and rates. None: they share none.
    """
    rows = [read_captures(each.capture.files, ("identities",)).identities for each in (view, other)]
    other_paths = {frozenset(ends): number for number, ends in enumerate(_address_pairs(other.capture))}
    shortest: dict[tuple[int, int], int] = {}
    ways: dict[tuple[int, int], tuple[Rows, Rows]] = {}
    for path in paths:
        number = other_paths.get(frozenset(_address_pairs(view.capture)[path]))
        if number is None:
            continue
        for direction in (0, 1):
            ends = [
                _one_way(rows[0], view.flow, path, direction ^ _end(both[0], path, 0)),
                _one_way(rows[1], other.flow, number, direction ^ _end(theirs[0], number, 0)),
            ]
            first, second = ends if direction == here else ends[::-1]
            ways[path, direction] = first, second
            delay = _delays(first, second)
            if len(delay):
                shortest[path, direction] = int(delay.min())
    pairs = [path for path in paths if (path, 0) in shortest and (path, 1) in shortest]
    if not pairs:
        return None
    # the shortest way from here, less the shortest back, is twice what the other clock is ahead
    ahead_ns = (shortest[pairs[0], here] - shortest[pairs[0], 1 - here]) // 2
    round_trips = {path: shortest[path, 0] + shortest[path, 1] for path in pairs}
    round_trips |= {path: round_trips[pairs[0]] for path in paths if path not in round_trips}
    packets: dict[tuple[int, int], list[Packet]] = {}
    rates: dict[int, float | None] = {}
    # packets after the end of either capture: none was captured at both, so neither is said to be lost before it
    end_ns = max(int(view.capture.packets["time_ns"].max()), int(other.capture.packets["time_ns"].max()) - ahead_ns)
    for (path, direction), (first, second) in ways.items():
        away = direction != here
        until_ns = end_ns + (ahead_ns if away else 0) - round_trips[path]
        seen = of_both_ends(first, second, _data_packets((theirs if away else both)[direction], first), until_ns)
        if away:
            seen = [dataclasses.replace(packet, time_ns=packet.time_ns - ahead_ns) for packet in seen]
        packets[path, direction] = seen
        if direction == 0 or rates.get(path) is None:
            rates[path] = _rate(first, second)
    return ahead_ns, round_trips, packets, rates


def _address_pairs(capture: Capture) -> list[tuple[str, str]]:
    return [(address_text(bytes(row["a"])), address_text(bytes(row["b"]))) for row in capture.paths]


def _one_way(rows: Rows, flow: int, path: int, path_direction: int) -> Rows:
    mine: Rows = rows[(rows["flow"] == flow) & (rows["path"] == path) & (rows["path_direction"] == path_direction)]
    mine = mine[np.argsort(mine["time_ns"], kind="stable")]
    return mine


def _delays(first: Rows, second: Rows) -> Ints:
    place = match_packets(first, second).place
    there = place != NOWHERE
    delays: Ints = second["time_ns"][place[there]].astype(np.int64) - first["time_ns"][there].astype(np.int64)
    return delays


def _data_packets(association: Association, rows: Rows) -> list[int]:
    """The packets of one way with data, in order."""
    sent = set(association.chunks["packet"][association.columns.is_data].tolist())
    return [int(packet) for packet in rows["packet"] if int(packet) in sent]


def _rate(first: Rows, second: Rows) -> float | None:
    """The rate at which packets that were sent together arrived; None: none were."""
    place = match_packets(first, second).place
    there = np.flatnonzero(place != NOWHERE)
    if len(there) < 2:
        return None
    sent, came = first["time_ns"][there].astype(np.int64), second["time_ns"][place[there]].astype(np.int64)
    bits = first["ip_bytes"][there].astype(np.int64) * 8
    apart_sent, apart = np.diff(sent), np.diff(came)
    spread = (apart > 4 * np.maximum(apart_sent, NEAR_NS // 50)) & (apart < 1000 * NEAR_NS)
    if spread.sum() < LEAST_RATE_PAIRS:
        return None
    rates = bits[1:][spread] * 1e9 / apart[spread]
    return float(np.median(rates))
