"""The data level of MPTCP: the subflows of a connection carry one numbered stream (RFC 8684 3.3).

A byte may be sent on several subflows, or twice on one (reinjection), and is new on each subflow. Its data sequence
number shows whether it is new to the connection.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from ..arrays import spread
from ..native import Bools, Ints, Rows

MAPPED = 64  # Bit of segments[options]: dsn is known
DATA_ACK = 128  # Bit of segments[options]: dsn is the 64-bit DATA_ACK of a segment without payload


@dataclasses.dataclass(frozen=True)
class DataLevel:
    """The data level of segments; one value per segment, in the order given.

    start: number of its first byte, counted from the lowest number of these segments. new_bytes: bytes that no earlier
    segment carried, on any subflow. seen: an earlier segment carried some of its bytes. elsewhere: some of those were
    first sent on another path (or flow: `by`); elsewhere_bytes: how many. known: a mapping (DSS) gives its number; if
    not, the other columns are 0 or False.
    """

    start: Ints
    new_bytes: Ints
    seen: Bools
    elsewhere: Bools
    elsewhere_bytes: Ints
    known: Bools


def data_level(segments: Rows, by: str = "path") -> DataLevel:
    """The data level of one direction of one MPTCP connection. segments: those with payload, sorted by time. by: the
    column that defines "elsewhere": another path, or another flow (two subflows may share a path).
    """
    dsn, known = _numbers(segments)
    count = len(segments)
    new_bytes, start = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    seen, elsewhere = np.zeros(count, dtype=np.bool_), np.zeros(count, dtype=np.bool_)
    elsewhere_bytes = np.zeros(count, dtype=np.int64)
    rows = np.flatnonzero(known)
    if not len(rows):
        return DataLevel(start, new_bytes, seen, elsewhere, elsewhere_bytes, known)
    low = dsn[rows] - dsn[rows[0]]  # 64-bit numbers wrap, their distances do not
    low -= low.min()
    high = low + segments["payload_bytes"][rows].astype(np.int64)
    # cut at every end of every segment: each piece is then either wholly seen before or wholly new
    cuts = np.unique(np.concatenate([low, high]))
    first, last = np.searchsorted(cuts, low), np.searchsorted(cuts, high)
    owner, piece = spread(first, last - first)
    _, place = np.unique(piece, return_index=True)  # the first segment, in time, that carried it
    is_first = np.zeros(len(owner), dtype=np.bool_)
    is_first[place] = True
    width = np.diff(cuts)[piece]
    new_bytes[rows] = np.bincount(owner, weights=width * is_first, minlength=len(rows)).astype(np.int64)
    path = segments[by][rows]
    first_owner = np.zeros(len(cuts), dtype=np.int64)
    first_owner[piece[place]] = owner[place]
    moved = ~is_first & (path[first_owner[piece]] != path[owner])
    seen[rows] = np.bincount(owner, weights=~is_first, minlength=len(rows)) > 0
    elsewhere_bytes[rows] = np.bincount(owner, weights=width * moved, minlength=len(rows)).astype(np.int64)
    elsewhere[rows] = elsewhere_bytes[rows] > 0
    start[rows] = low
    return DataLevel(start, new_bytes, seen, elsewhere, elsewhere_bytes, known)


def numbered(segments: Rows) -> Rows:
    """The segments, each mapped that another one's mapping gives a number: any part of them keeps it."""
    dsn, known = _numbers(segments)
    rows = segments.copy()
    rows["dsn"] = np.where(known, dsn.astype(rows["dsn"].dtype), rows["dsn"])
    rows["options"] |= np.where(known, MAPPED, 0).astype(rows["options"].dtype)
    return rows


def _numbers(segments: Rows) -> tuple[Ints, Bools]:
    """Data sequence numbers, and a mask of the segments that have one. Segments without a mapping are numbered
    backwards from the next byte of their subflow that has one: MP_CAPABLE maps the first segments without giving their
    number (RFC 8684 3.1), and they may come, or be sent again, after others.
    """
    dsn, known = segments["dsn"].astype(np.int64), segments["options"] & MAPPED != 0
    if known.all():
        return dsn, known
    for mine in places_by(segments["flow"]):
        mapped = mine[known[mine]]
        if not len(mapped):
            continue
        anchors = mapped[np.argsort(segments["seq"][mapped], kind="stable")]
        bare = mine[~known[mine]]
        place = np.searchsorted(segments["seq"][anchors], segments["seq"][bare])
        bare, anchor = bare[place < len(anchors)], anchors[place[place < len(anchors)]]
        dsn[bare] = dsn[anchor] - (segments["seq"][anchor] - segments["seq"][bare])
        known[bare] = True
    return dsn, known


def places_by(numbers: Ints) -> list[Ints]:
    """The places of each number, ascending, for each number that is there, in the order of the numbers."""
    order = np.argsort(numbers, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1) if len(order) else []
