"""Two captures of an association compared event by event: one from the field, and one of a cell that plays it again.

An event is a chunk that an end sent: new data, data sent again, a SACK, a part of the handshake or of the end. Not
compared: HEARTBEATs and their answers, since their instants are random (RFC 9260 8.3).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from ...core.numbers import in_short
from ...core.wire import HEARTBEAT, HEARTBEAT_ACK, SACK, chunk_name
from ..inference import MS
from ..native import UNKNOWN
from .association import Association
from .transmissions import NEVER

WITHIN_NS = 50 * MS
WITHIN_RATIO = 0.1
"""Of the time since the last acknowledgement of anything new: by so much two timers that ran may differ."""

Key = tuple[int, str, int, int]
"""Direction, kind of chunk, its number (relative TSN, or cumulative one), how often it was sent before."""


@dataclasses.dataclass(frozen=True)
class SentEvent:
    """An event. time_ns: from the association's beginning in this capture. path: number among the paths compared.

    allowed_ns: by so much its time may differ in another capture.
    """

    key: Key
    time_ns: int
    path: int
    allowed_ns: float

    @property
    def text(self) -> str:
        """Such as "a: DATA 7 again"."""
        direction, kind, number, before = self.key
        what = f"{kind} {number}" if number >= 0 else kind
        return f"{'ab'[direction]}: {what}" + (" again" if before and kind != "SACK" else "")


@dataclasses.dataclass(frozen=True)
class EventMatch:
    """How far two captures (or two ends of each) agree. matched: events of the first, before the two part, of `events`;
    largest_ns: by which these differ at most. parting: the first difference in words; "": none. pairs: event, and its
    time in the other (None: not there). extra: the event of the second at which they part, if the first has no such
    then; else None. parting_ns: its time; apart_ns: between its two times (NEVER: one is missing).
    """

    events: int
    matched: int
    largest_ns: int
    parting: str
    pairs: tuple[tuple[SentEvent, int | None], ...]
    extra: SentEvent | None = None
    parting_ns: int = 0
    apart_ns: int = NEVER

    @property
    def rank(self) -> tuple[bool, int, int]:
        """The larger, the more alike."""
        return self.whole, self.matched, -self.apart_ns

    @property
    def whole(self) -> bool:
        """Whether all events are there, in time."""
        return not self.parting


def sent_events(association: Association, paths: list[int], begin_ns: int, *, turned: bool = False) -> list[SentEvent]:
    """The events of both directions, in order. paths: rows of the capture's path table, in the order of the cell's
    paths; begin_ns: the time from which they count; turned: the ends change places.
    """
    columns = association.columns
    first = {
        direction: int(tsns.min()) if len(tsns) else 0
        for direction in (0, 1)
        for tsns in [
            columns["tsn"][columns.is_data & (columns["direction"] == direction) & (columns["tsn"] != UNKNOWN)]
        ]
    }
    whole = bool(association.row["base_known"].all())
    base = {direction: 0 if whole else first[direction] for direction in (0, 1)}
    sacks = association.capture.sacks
    cumulative = dict(zip(sacks["packet"].tolist(), sacks["cumulative_tsn"].tolist(), strict=True))
    is_data = columns.is_data
    number_of = {path: number for number, path in enumerate(paths)}
    seen: dict[tuple[int, str, int], int] = {}
    highest = {0: -1, 1: -1}
    progress_ns = begin_ns
    result: list[SentEvent] = []
    kinds, directions = columns["type"].tolist(), columns["direction"].tolist()
    order = np.argsort(association.order(columns["packet"]), kind="stable")
    for place in order.tolist():
        kind, direction = kinds[place], directions[place]
        if kind in (HEARTBEAT, HEARTBEAT_ACK):
            continue
        time_ns, number = int(columns["time_ns"][place]), -1
        if is_data[place]:
            number = int(columns["tsn"][place]) - base[direction]
        elif kind == SACK:
            number = cumulative.get(int(columns["packet"][place]), -1) - base[1 - direction]
            if not whole and number < 0:  # of data before the capture
                continue
        name = "DATA" if is_data[place] else chunk_name(kind)
        which = (direction ^ turned, name, number)
        before = seen.get(which, 0)
        seen[which] = before + 1
        allowed = max(WITHIN_NS, WITHIN_RATIO * (time_ns - progress_ns))
        path = number_of.get(int(columns["path"][place]), -1)
        result.append(SentEvent((*which, before), time_ns - begin_ns, path, allowed))
        if kind == SACK and number > highest[direction]:
            highest[direction] = number
            progress_ns = time_ns
    return result


def match_events(field: list[SentEvent], cell: list[SentEvent], until_ns: int) -> EventMatch:
    """Compare the events of a capture with those of a cell, up to a time."""
    there = {event.key: event for event in cell}
    mine = [event for event in field if event.time_ns <= until_ns]
    pairs = []
    parting_at: tuple[int, str] | None = None
    matched, largest, apart_ns = 0, 0, NEVER
    extra: SentEvent | None = None
    for event in mine:
        other = there.get(event.key)
        pairs.append((event, None if other is None else other.time_ns))
        if parting_at is not None:
            continue
        at = in_short(event.time_ns / 1e9, "s")
        if other is None:
            parting_at = event.time_ns, f"{event.text} at {at} in the capture: the replay has no such packet"
        elif abs(other.time_ns - event.time_ns) > event.allowed_ns:
            said = in_short(other.time_ns / 1e9, "s")
            apart_ns = abs(other.time_ns - event.time_ns)
            parting_at = (
                min(event.time_ns, other.time_ns),
                f"{event.text} at {at} in the capture, at {said} in the replay",
            )
            if other.time_ns < event.time_ns:
                extra = dataclasses.replace(event, time_ns=other.time_ns, path=other.path)
        elif other.path != event.path and event.path >= 0:
            parting_at = (
                event.time_ns,
                f"{event.text} at {at}: on path {event.path + 1}, in the replay on {other.path + 1}",
            )
        else:
            matched += 1
            largest = max(largest, abs(other.time_ns - event.time_ns))
    known = {event.key for event in field}
    for event in cell:
        if event.key not in known and event.time_ns < until_ns - WITHIN_NS:
            if parting_at is None or event.time_ns < parting_at[0]:
                at = in_short(event.time_ns / 1e9, "s")
                parting_at = event.time_ns, f"{event.text} at {at} in the replay: the capture has no such packet"
                extra = event
                matched = sum(each.time_ns < event.time_ns for each, _ in pairs)
            break
    at_ns, parting = parting_at or (0, "")
    return EventMatch(len(mine), matched, largest, parting, tuple(pairs), extra, at_ns, apart_ns)


def both_ends(matches: Mapping[int, EventMatch], away_ns: int) -> EventMatch:
    """The matches at both ends as one: each event as its sender has it. away_ns: from a to b, by which the times of b
    are behind.
    """
    if len(matches) == 1:
        return next(iter(matches.values()))
    pairs = [
        (dataclasses.replace(event, time_ns=event.time_ns + end * away_ns), None if at is None else at + end * away_ns)
        for end, match in matches.items()
        for event, at in match.pairs
        if event.key[0] == end
    ]
    first = min(matches.values(), key=lambda match: (match.whole, match.parting_ns))
    return EventMatch(
        events=sum(match.events for match in matches.values()),
        matched=sum(match.matched for match in matches.values()),
        largest_ns=max(match.largest_ns for match in matches.values()),
        parting=first.parting,
        pairs=tuple(sorted(pairs, key=lambda pair: pair[0].time_ns)),
        extra=first.extra,
        parting_ns=first.parting_ns,
        apart_ns=first.apart_ns,
    )
