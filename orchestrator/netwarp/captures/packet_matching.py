"""Matches the packets of two captures: the row in one of the same packet in the other."""

from __future__ import annotations

import dataclasses

import numpy as np

from .native import Ints, Rows

NOWHERE = -1


@dataclasses.dataclass(frozen=True)
class PacketMatches:
    """The matches of one direction of a path. place: for each row of the first capture its row in the second, -1: not
    there. by_time: number of rows whose fingerprint is not unique and occurs a different number of times in the two
    captures, so that only times tell which is which. again: rows of the second capture left over although the first has
    that packet (it was duplicated in between).
    """

    place: Ints
    by_time: int
    again: int


def match_packets(before: Rows, after: Rows) -> PacketMatches:
    """Match rows of `identities`. Both must be sorted by time and hold one direction of one path.

    A transport may send equal packets twice, so fingerprints need not be unique. If both captures have a fingerprint
    equally often, the rows are paired in order. Otherwise each row of the second capture is paired with the latest row
    of the first that can have arrived by then, given the shortest delay of all packets with a unique fingerprint.
    """
    place = np.full(len(before), NOWHERE, dtype=np.int64)
    if not len(before) or not len(after):
        return PacketMatches(place, 0, 0)
    _, group = np.unique(np.concatenate([before["fingerprint"], after["fingerprint"]]), return_inverse=True)
    here, there = group[: len(before)], group[len(before) :]
    groups = int(group.max()) + 1
    many_here, many_there = np.bincount(here, minlength=groups), np.bincount(there, minlength=groups)
    alike = (many_here == many_there)[here]
    _pair_in_order(place, here, there, np.flatnonzero(alike))
    unlike = (many_here != many_there) & (many_here > 0) & (many_there > 0)
    rows_here, rows_there = np.flatnonzero(unlike[here]), np.flatnonzero(unlike[there])
    if not len(rows_here):
        return PacketMatches(place, 0, 0)
    paired = place != NOWHERE
    delays = after["time_ns"][place[paired]] - before["time_ns"][paired]
    shortest = int(delays.min()) if len(delays) else 0
    taken = _pair_by_time(place, here, there, rows_here, rows_there, before, after, shortest)
    return PacketMatches(
        place, len(rows_here), int(np.maximum(many_there - many_here, 0)[unlike].sum()) if taken else 0
    )


def _pair_in_order(place: Ints, here: Ints, there: Ints, rows: Ints) -> None:
    """Pair the k-th row of a group in the first capture with the k-th one in the second."""
    in_groups = np.zeros(int(max(here.max(), there.max())) + 1, dtype=np.bool_)
    in_groups[here[rows]] = True
    other = np.flatnonzero(in_groups[there])
    place[rows[np.argsort(here[rows], kind="stable")]] = other[np.argsort(there[other], kind="stable")]


def _pair_by_time(
    place: Ints, here: Ints, there: Ints, rows: Ints, others: Ints, before: Rows, after: Rows, shortest: int
) -> int:
    """Pair each of `others` with the last row of its group that was sent at least `shortest` before it; each row is
    taken once, by the first that claims it.
    """
    time = np.concatenate([before["time_ns"][rows], after["time_ns"][others] - shortest])
    group = np.concatenate([here[rows], there[others]])
    is_other = np.arange(len(time)) >= len(rows)
    order = np.lexsort((is_other, time, group))
    last = np.maximum.accumulate(np.where(is_other[order], -1, np.arange(len(order))))
    arrivals = np.flatnonzero(is_other[order] & (last >= 0))
    arrivals = arrivals[group[order[last[arrivals]]] == group[order[arrivals]]]
    candidate, other = order[last[arrivals]], order[arrivals] - len(rows)
    candidate, first = np.unique(candidate, return_index=True)
    place[rows[candidate]] = others[other[first]]
    return len(candidate)
