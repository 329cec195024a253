"""Packets of an association that arrived and that were lost, by path and direction, as captures show them, and from
these the intervals in which the network passed nothing.

With captures of both ends each packet is known. With one, losses of what that end sent are inferred from what the other
acknowledged; of what the other end sent only that is known which arrived.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from ...core.wire import COOKIE_ACK, COOKIE_ECHO, INIT, INIT_ACK
from ..hop_joins import NOWHERE, match_packets
from ..inference import MS
from ..native import Rows
from .association import Association
from .transmissions import NEVER

EDGE_NS = 1 * MS
"""An interval in which nothing passed begins so long before its first loss, where no packet passed in between."""
NEAR_NS = 1 * MS
"""A loss so near to a packet that arrived is one of single packets, told by its number."""
ANSWER = 0.9
"""Share of the shortest round trip: what came sooner answers something earlier."""
LATE_NS = 200 * MS
"""A chunk that comes so long before a SACK is in it: by more, queues and the ways of two paths do not differ."""
PUT_OFF_NS = 200 * MS
"""Delay of a SACK at the receiver where it is not known: the largest that RFC 9260 6.2 has for usual."""


@dataclasses.dataclass(frozen=True, order=True)
class Packet:
    """A packet of one direction of a path: when its sender sent it, whether it arrived, and its number among those with
    data there, from 1; 0: it has none, or the number is not known.
    """

    time_ns: int
    arrived: bool
    number: int = 0


@dataclasses.dataclass(frozen=True)
class Dead:
    """An interval in which nothing passed. It began at `begin_ns`, and ended between `least_ns` and `most_ns`: after
    its last loss, before the next packet that arrived (most_ns NEVER: none did). losses: packets that show it.
    """

    begin_ns: int
    least_ns: int
    most_ns: int
    losses: int


@dataclasses.dataclass(frozen=True)
class Way:
    """One direction of a path: the intervals in which nothing passed, and the numbers of single data packets lost."""

    dead: tuple[Dead, ...]
    lost: tuple[int, ...]


def way(packets: Iterable[Packet]) -> Way:
    """The intervals and single losses that packets of one direction of a path show."""
    ordered = sorted(packets)
    dead: list[Dead] = []
    single: list[int] = []
    before_ns = -NEVER
    for arrived, run in itertools.groupby(enumerate(ordered), key=lambda each: each[1].arrived):
        places, members = zip(*run, strict=True)
        if arrived:
            before_ns = members[-1].time_ns
            continue
        first_ns, last_ns = members[0].time_ns, members[-1].time_ns
        after_ns = ordered[places[-1] + 1].time_ns if places[-1] + 1 < len(ordered) else NEVER
        close = first_ns - before_ns < NEAR_NS or after_ns - last_ns < NEAR_NS
        if close and all(packet.number for packet in members):
            single += [packet.number for packet in members]
            continue
        begin_ns = first_ns - min(EDGE_NS, (first_ns - before_ns) // 2)
        least_ns = last_ns + min(EDGE_NS, (after_ns - last_ns) // 2)
        most_ns = NEVER if after_ns == NEVER else after_ns - min(EDGE_NS, (after_ns - last_ns) // 2)
        dead.append(Dead(begin_ns, least_ns, most_ns, len(members)))
    return Way(tuple(dead), tuple(single))


def of_both_ends(here: Rows, there: Rows, data: Sequence[int], until_ns: int) -> list[Packet]:
    """The packets of one direction of a path that its sender captured. here, there: rows of `identities` at both ends,
    by time. data: the packets (by their number in the capture) with data. until_ns: when the other capture ends, by
    this one's clock; of packets sent later those that arrived are known.
    """
    matches = match_packets(here, there)
    numbers = {packet: number for number, packet in enumerate(data, 1)}
    return [
        Packet(int(row["time_ns"]), bool(place != NOWHERE), numbers.get(int(row["packet"]), 0))
        for row, place in zip(here, matches.place.tolist(), strict=True)
        if row["time_ns"] <= until_ns or place != NOWHERE
    ]


def inferred(association: Association, round_trips: Mapping[int, int]) -> dict[tuple[int, int], list[Packet]]:
    """What the capture at the data's sender shows of its own packets and of the answers, by (path, direction).

    Of a chunk sent several times that many arrived as the other end reported twice, and one: the earliest of these, and
    the last before it was acknowledged. The answer to one that arrived and was sent again nevertheless was lost, unless
    the acknowledgement came too soon to answer the second. round_trips: shortest, by path, in ns.
    """
    sent, mine = association.sent, association.direction
    found: dict[tuple[int, int], list[Packet]] = {}
    if len(sent):
        arrived = transmissions_that_arrived(association, round_trips)
        times, paths = sent.rows["time_ns"].tolist(), sent.rows["path"].tolist()
        begins = [*sent.packets.tolist(), len(sent)]
        numbers: dict[int, int] = {}
        for begin, end in itertools.pairwise(begins):
            path = int(paths[begin])
            numbers[path] = numbers.get(path, 0) + 1
            known = [arrived[row] for row in range(begin, end) if arrived[row] is not None]
            if known:
                packet = Packet(int(times[begin]), any(known), numbers[path])
                found.setdefault((path, mine), []).append(packet)
        for path, packet in _answers_lost(association, round_trips, arrived):
            found.setdefault((path, 1 - mine), []).append(packet)
    for path, time_ns, came in _asked(association):
        found.setdefault((path, mine), []).append(Packet(time_ns, came))
    back = association.capture.packets
    back = back[(back["flow"] == association.flow) & (back["direction"] != mine)]
    for path, time_ns in zip(back["path"].tolist(), back["time_ns"].tolist(), strict=True):
        half = round_trips.get(int(path), 0) // 2
        found.setdefault((int(path), 1 - mine), []).append(Packet(int(time_ns) - half, arrived=True))
    return found


def transmissions_that_arrived(association: Association, round_trips: Mapping[int, int]) -> list[bool | None]:
    """Of each transmission whether it arrived; None: not known (never acknowledged, and never sent again)."""
    sent, reports = association.sent, association.reports
    twice = np.bincount(
        np.searchsorted(sent.tsns, reports.duplicate_tsn[np.isin(reports.duplicate_tsn, sent.tsns)]),
        minlength=len(sent.tsns),
    )
    acked_ns = reports.time_of(reports.acked_by)
    rows_of: dict[int, list[int]] = {}
    for row, unit in enumerate(sent.unit.tolist()):
        rows_of.setdefault(unit, []).append(row)
    result: list[bool | None] = [None] * len(sent)
    times, paths = sent.rows["time_ns"], sent.rows["path"]
    told = np.sort(reports.time_ns)
    end_ns = int(association.row["last_ns"])
    for unit, rows in rows_of.items():
        if acked_ns[unit] == NEVER:
            silent = end_ns - int(times[rows[-1]]) > 2 * PUT_OFF_NS  # an answer would have been captured
            for row in rows if silent else rows[:-1]:
                result[row] = False
            continue
        if len(rows) == 1:
            result[rows[0]] = True
            continue
        extra = int(twice[unit])
        answer_ns = int(acked_ns[unit])
        could = [row for row in rows if times[row] + ANSWER * round_trips.get(int(paths[row]), 0) <= answer_ns]
        last = could[-1] if could else rows[0]
        before = int(np.searchsorted(told, answer_ns)) - 1
        silent_ns = int(told[before]) - LATE_NS if before >= 0 else -NEVER
        # what arrived long before a SACK that did not report it did not arrive
        others = [row for row in rows if row != last]
        others = [row for row in others if times[row] + 2 * round_trips.get(int(paths[row]), 0) > silent_ns] or others
        there = {last, *others[:extra]}
        for row in rows:
            if row in there or row < last:  # of one sent after the answer was under way nothing was reported
                result[row] = row in there
    return result


def _answers_lost(
    association: Association, round_trips: Mapping[int, int], arrived: Sequence[bool | None]
) -> list[tuple[int, Packet]]:
    """Acknowledgements that the receiver must have sent and that did not come: (path, when)."""
    sent, reports = association.sent, association.reports
    acked_ns = reports.time_of(reports.acked_by)
    lost = []
    for row in range(len(sent)):
        after = int(sent.after[row])
        if not arrived[row] or after < 0:
            continue
        path = int(sent.rows["path"][row])
        trip = round_trips.get(path, 0)
        time_ns, again_ns = int(sent.rows["time_ns"][row]), int(sent.rows["time_ns"][after])
        if acked_ns[sent.unit[row]] < again_ns + ANSWER * trip:
            continue  # it was late, no more
        until_ns = min(time_ns + PUT_OFF_NS, (time_ns + again_ns) // 2)
        lost += [(path, Packet(at + trip // 2, arrived=False)) for at in (time_ns, until_ns)]
    return lost


def _asked(association: Association) -> list[tuple[int, int, bool]]:
    """HEARTBEATs, and of the initiator INITs and COOKIE ECHOs: (path, when, whether an answer came)."""
    beats = association.heartbeats
    mine = beats.direction == association.direction
    asked = list(
        zip(beats.path[mine].tolist(), beats.time_ns[mine].tolist(), beats.answered[mine].tolist(), strict=True)
    )
    end_ns = int(association.row["last_ns"])
    asked = [each for each in asked if each[2] or end_ns - each[1] > PUT_OFF_NS]
    chunks, columns = association.chunks, association.columns
    if association.direction == 0:
        for kind, answer in ((INIT, INIT_ACK), (COOKIE_ECHO, COOKIE_ACK)):
            rows, answers = chunks[columns.of_type(kind)], chunks[columns.of_type(answer)]
            each = len(rows) == len(answers) and bool((answers["time_ns"] > rows["time_ns"]).all())
            for number, row in enumerate(rows):
                until_ns = int(rows[number + 1]["time_ns"]) if number + 1 < len(rows) else NEVER
                came = (answers["time_ns"] >= row["time_ns"]) & (answers["time_ns"] < until_ns)
                asked.append((int(row["path"]), int(row["time_ns"]), each or bool(came.any())))
    return asked
