"""What a TCP sender waited for that is no loss: a peer that does not answer keep-alives; and full segments that no
acknowledgement ever covers while small ones pass.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from ..native import UNKNOWN, Ints
from .columns import DirectionColumns
from .direction import Direction
from .retransmission import RetransmissionCause

LEAST_LARGE = 500
"""Bytes of payload: smaller segments are no reason to suspect the path's MTU."""
IN_A_ROW = 3
PAUSE_NS = 1_000_000_000


def unanswered_keep_alives(direction: Direction) -> tuple[int, int | None]:
    """Keep-alives in a row without any segment of the other end, up to the last of all; and the time of the first."""
    data, alive = direction.data, direction.probes[1]
    heard = int(direction.acks.row[-1]) if len(direction.acks) else -1
    last = np.flatnonzero(alive & (data.row > heard))
    return len(last), int(data.time_ns[last[0]]) if len(last) else None


@dataclasses.dataclass(frozen=True)
class LargeSegmentsLost:
    """Full segments of which none was acknowledged: from the first to the last transmission; packets, and the least
    payload of one. passed_bytes: the largest payload that did pass meanwhile; None: none was sent, only the handshake
    passed before.
    """

    from_ns: int
    to_ns: int
    packets: int
    least_bytes: int
    passed_bytes: int | None


def large_segments_lost(direction: Direction) -> LargeSegmentsLost | None:
    """Timeouts in a row of a full segment, with no acknowledgement of any full one meanwhile (RFC 2923 2.1)."""
    data, acks, again = direction.data, direction.acks, direction.retransmissions
    if again is None or direction.position.is_far or not len(acks):
        return None
    timeouts = (again.cause == RetransmissionCause.TIMEOUT) & (again.series >= IN_A_ROW)
    if not timeouts.any():
        return None
    longest = int(np.flatnonzero(timeouts)[np.argmax(again.series[timeouts])])
    una = int(data.seq[again.segment[longest]])
    sent = data.carries[(data.seq[data.carries] <= una) & (data.end[data.carries] > una)]
    if not len(sent):  # a FIN was sent again
        return None
    size = int(data.payload_bytes[sent].min())
    if size < LEAST_LARGE or size < 0.9 * int(data.payload_bytes[data.carries].max()):
        return None
    from_ns = int(data.time_ns[sent[0]])
    to_ns = int(data.time_ns[sent[-1]])
    meanwhile = data.carries[(data.time_ns[data.carries] >= from_ns) & (data.time_ns[data.carries] <= to_ns)]
    large = meanwhile[data.payload_bytes[meanwhile] >= size]
    reported = direction.reports
    sacked = _sacked(data, large, reported.newest[1], reported.newest[2])
    first_large = not (data.payload_bytes[data.carries[data.carries < sent[0]]] >= size).any()
    if sacked or not (first_large or _answered(acks, from_ns, to_ns)):
        return None
    small = meanwhile[data.payload_bytes[meanwhile] < size]
    passed = small[_covered(small, data, reported.newest[1], reported.newest[2])] if len(small) else small
    if len(small) and not len(passed):
        return None  # nothing passes
    most = int(data.payload_bytes[passed].max()) if len(passed) else None
    return LargeSegmentsLost(from_ns, to_ns, len(large), size, most)


def _answered(acks: DirectionColumns, from_ns: int, to_ns: int) -> bool:
    """Whether anything of the other end came meanwhile: the path back is there, and it has what it answers."""
    return bool(((acks.time_ns > from_ns) & (acks.time_ns < to_ns)).any())


def _covered(rows: Ints, data: DirectionColumns, start: Ints, end: Ints) -> Ints:
    """Indices among rows of the segments that a SACK reported."""
    found = [
        number for number, row in enumerate(rows.tolist()) if ((start <= data.seq[row]) & (end >= data.end[row])).any()
    ]
    return np.array(found, dtype=np.int64)


def _sacked(data: DirectionColumns, rows: Ints, start: Ints, end: Ints) -> bool:
    return bool(len(start) and len(_covered(rows, data, start, end)))


def pauses(directions: tuple[Direction, Direction]) -> list[tuple[int, int, int]]:
    """(begin, length, end): the times in which all data had been acknowledged, no window was closed, and the end that
    sent data next had nothing to send; PAUSE_NS or more. Keep-alives may come meanwhile.
    """
    sent: list[tuple[Ints, Ints, Ints]] = []
    for end, direction in enumerate(directions):
        rows = direction.data.carries[~direction.data.probe[direction.data.carries]]
        times, fresh = direction.data.time_ns[rows], direction.data.new_bytes[rows] > 0
        sent.append((times, np.full(len(times), end), fresh.astype(np.int64)))
    times, ends, fresh = (np.concatenate(columns) for columns in zip(*sent, strict=True))
    order = np.argsort(times, kind="stable")
    times, ends, fresh = times[order], ends[order], fresh[order]
    found = []
    for place in (np.flatnonzero(np.diff(times) >= PAUSE_NS) + 1).tolist():
        begin_ns, until_ns = int(times[place - 1]), int(times[place])
        closed = any(_closed(each, begin_ns, until_ns) for each in directions)
        if fresh[place] and not closed and all(_all_acknowledged(each, until_ns) for each in directions):
            found.append((begin_ns, until_ns - begin_ns, int(ends[place])))
    return found


def _closed(direction: Direction, begin_ns: int, until_ns: int) -> bool:
    windows = direction.windows
    open_again = (windows.span_end_ns >= 0) & (windows.span_end_ns <= begin_ns)
    return bool(((windows.span_begin_ns < until_ns) & ~open_again).any())


def _all_acknowledged(direction: Direction, before_ns: int) -> bool:
    data, acks = direction.data, direction.acks
    sent = data.highest_sent[data.time_ns < before_ns]
    heard = acks.highest_ack[acks.time_ns < before_ns]
    return not len(sent) or bool(len(heard) and int(heard[-1]) != UNKNOWN and int(heard[-1]) >= int(sent[-1]))
