"""Vectorised queries about arrays: runs, ranges, sorting, searching and covering without loops in Python."""

from __future__ import annotations

from typing import Literal

import numpy as np

from .native import Bools, Ints, Rows

DENSE = 4  # Numbers of which at least one in four occurs are counted instead of sorted


def unique_with_places(values: Ints) -> tuple[Ints, Ints]:
    """As np.unique with its inverse; it needs no sort if the numbers are dense, as TSNs are."""
    low, high = (int(values.min()), int(values.max())) if len(values) else (0, -1)
    if not len(values) or high - low >= DENSE * len(values):
        present, place = np.unique(values, return_inverse=True)
        return present, place
    there = np.zeros(high - low + 1, dtype=np.bool_)
    offset = values - low
    there[offset] = True
    present = np.flatnonzero(there)
    if len(present) == len(there):
        return present + low, offset
    return present + low, (np.cumsum(there) - 1)[offset]


def ascending_order(values: Ints) -> Ints | slice:
    """As a stable argsort; if the values are ascending already, as in most captures, the result is a slice, and nothing
    is copied.
    """
    if (values[1:] >= values[:-1]).all():
        return slice(None)
    return np.argsort(values, kind="stable")


def search_ascending(thresholds: Ints, values: Ints, side: Literal["left", "right"] = "left") -> Ints:
    """As np.searchsorted(thresholds, values, side) for ascending `values`: it searches the thresholds among the values,
    which is faster if there are fewer thresholds.
    """
    cuts = np.searchsorted(values, thresholds, side="right" if side == "left" else "left")
    return np.repeat(np.arange(len(thresholds) + 1), np.diff(cuts, prepend=0, append=len(values)))


def before(values: Rows, initial: float) -> Rows:
    """The value before each; `initial` before the first."""
    return np.concatenate([np.array([initial], dtype=values.dtype), values])[: len(values)]


def run_begins(values: Rows) -> Bools:
    """True where the value differs from the one before, and for the first."""
    return np.concatenate([[True], values[1:] != values[:-1]])[: len(values)]


def run_lengths(values: Rows) -> Ints:
    """Lengths of the runs of equal neighbours; for sorted values, how often each value occurs."""
    return np.diff(np.flatnonzero(run_begins(values)), append=len(values))


def latest(mask: Bools) -> Ints:
    """The last place up to each at which the mask is True; -1: none."""
    return np.maximum.accumulate(np.where(mask, np.arange(len(mask)), -1))


def rank_in_run(begins: Bools) -> Ints:
    """0, 1, 2, ... within each run; begins: where one starts."""
    return np.arange(len(begins)) - latest(begins)


def spread(first: Rows, counts: Rows) -> tuple[Ints, Ints]:
    """The indices of the ranges [first, first + count), one after the other: the range of each, and the index."""
    many = counts.astype(np.int64)
    owner = np.repeat(np.arange(len(many)), many)
    return owner, np.arange(len(owner)) + (first.astype(np.int64) - np.cumsum(many) + many)[owner]


def first_interval_covering(low: Ints, high: Ints, size: int) -> Ints:
    """For each number 0..size-1: the index of the first of the intervals [low, high) that contains it, or len(low)."""
    none = len(low)
    keep = np.flatnonzero(high > low)
    if not len(keep):
        return np.full(size, none, dtype=np.int64)
    # between two neighbouring ends of intervals all places have the same answer: one is asked for all of them
    ends, place = unique_with_places(np.concatenate([low[keep], high[keep], [0, size]]))
    first = _painted(place[: len(keep)], place[len(keep) : -2], len(ends) - 1)
    return np.repeat(np.append(keep, none)[first], np.diff(ends))


def _painted(low: Ints, high: Ints, size: int) -> Ints:
    """first_interval_covering for non-empty intervals.

    Every interval is the union of two (overlapping) intervals whose widths are powers of two. These are painted from
    the widest level down, and each painted one passes its halves to the next level: O((size + intervals) log widest),
    whatever the total width.
    """
    none = len(low)
    covering = np.full(size, none, dtype=np.int64)
    level = np.frexp(high - low)[1] - 1
    for power in range(int(level.max()), -1, -1):
        # backwards: of equal places the last assignment holds, that of the first interval
        mine = np.flatnonzero(level == power)[::-1]
        for places in (low[mine], high[mine] - (1 << power)):
            painted = np.full(size, none, dtype=np.int64)
            painted[places] = mine
            np.minimum(covering, painted, out=covering)
        if power:
            half = 1 << (power - 1)
            upper = covering[: size - half].copy()
            np.minimum(covering[half:], upper, out=covering[half:])
    return covering


class NextAbove:
    """Finds the next value above a threshold in an array. It keeps the maxima of aligned blocks of 2, 4, 8, ... values,
    so that a query climbs to a block that contains the answer and descends in it.
    """

    def __init__(self, values: Ints) -> None:
        self.count = len(values)
        width = 1 << max(self.count - 1, 0).bit_length()
        level = np.full(width, np.iinfo(np.int64).min, dtype=np.int64)
        level[: self.count] = values
        self.levels = [level]
        while len(level) > 1:
            level = np.maximum(level[::2], level[1::2])
            self.levels.append(level)

    def many(self, start: Ints, threshold: Ints) -> Ints:
        """For each query: the first index >= start whose value is above the threshold; `count` if there is none."""
        top = len(self.levels) - 1
        place = np.minimum(start, 1 << top).astype(np.int64)
        depth = np.full(len(place), -1, dtype=np.int64)  # level of the block that holds the answer
        for power in range(top + 1):
            block = place >> power
            there = (depth < 0) & (block < len(self.levels[power]))
            there &= (block & 1 == 1) if power < top else np.True_
            above = np.zeros(len(place), dtype=np.bool_)
            above[there] = self.levels[power][block[there]] > threshold[there]
            depth[above] = power
            skip = there & ~above
            place[skip] = (block[skip] + 1) << power
        for power in range(top, 0, -1):
            now = np.flatnonzero(depth == power)
            left = place[now] >> (power - 1)
            right = self.levels[power - 1][left] <= threshold[now]
            place[now] = (left + right) << (power - 1)
            depth[now] = power - 1
        return np.where(depth < 0, self.count, np.minimum(place, self.count))

    def single(self, start: int, threshold: int) -> int:
        """The same for one query, which is faster without arrays."""
        power, block, top = 0, start, len(self.levels) - 1
        while block < len(self.levels[power]) and self.levels[power][block] <= threshold:
            block += 1
            while power < top and block & 1 == 0:
                power, block = power + 1, block >> 1
        if block >= len(self.levels[power]):
            return self.count
        while power:
            power, block = power - 1, block << 1
            block += int(self.levels[power][block] <= threshold)
        return min(block, self.count)
