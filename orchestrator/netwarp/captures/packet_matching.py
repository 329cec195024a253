"""Matches the packets of two captures: the row in one of the same packet in the other."""

from __future__ import annotations

import dataclasses

import numpy as np

from .native import Ints, Rows

NOWHERE = -1


@dataclasses.dataclass(frozen=True)
class PacketMatches:
    """place: by row of the first capture its row in the second, -1 = not there. by_time: rows whose fingerprint is not
    unique and whose numbers differ, so that only time tells which is which. again: rows of the second capture left over
    though the first has that packet (it was duplicated between them).
    """

    place: Ints
    by_time: int
    again: int


def match_packets(before: Rows, after: Rows) -> PacketMatches:
    """Find rows of `identities` again; both in the order of time, of one direction of one path.

    Equal fingerprints (a transport may send the very same packet twice) are paired in their order where both captures
    have as many, else by time: each one there is the last one here that can have arrived by then, given the shortest
    delay of all packets that are told apart.
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
    """The k-th of a group here is the k-th of it there."""
    in_groups = np.zeros(int(max(here.max(), there.max())) + 1, dtype=np.bool_)
    in_groups[here[rows]] = True
    other = np.flatnonzero(in_groups[there])
    place[rows[np.argsort(here[rows], kind="stable")]] = other[np.argsort(there[other], kind="stable")]


def _pair_by_time(
    place: Ints, here: Ints, there: Ints, rows: Ints, others: Ints, before: Rows, after: Rows, shortest: int
) -> int:
    """Each of `others` is the last of its group in `rows` sent at least `shortest` before; the first taker keeps it."""
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
