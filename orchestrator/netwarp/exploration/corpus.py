"""The schedules worth changing further: those that reached what no schedule before them had."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .changes import Change
from .counters import Counts

_BOUNDS = np.array([1, 2, 3, 4, 8, 16, 32, 128], np.uint64)
"""How often an arc ran is told apart in these steps (as AFL does): once, twice, 3, 4-7, ... 128 times and more."""


@dataclass(slots=True)
class Entry:
    """A schedule that was kept. new: how many arcs it was the first to run. chosen: how often it was changed."""

    root: int
    cell_id: str
    changes: tuple[Change, ...]
    new: int
    chosen: int = 0


@dataclass(slots=True)
class Reached:
    """What has been reached so far: the sum of all counters, and which steps of each were seen."""

    sums: dict[str, Counts] = field(default_factory=dict)
    _steps: dict[str, NDArray[np.uint16]] = field(default_factory=dict)

    def add(self, counts: Mapping[str, Counts]) -> tuple[int, int]:
        """Add a cell's counters. Returns how many arcs are new, and how many ran as often as never before."""
        arcs = steps = 0
        for name, numbers in counts.items():
            if name not in self.sums:
                self.sums[name] = np.zeros_like(numbers)
                self._steps[name] = np.zeros(len(numbers), np.uint16)
            arcs += int(((numbers > 0) & (self.sums[name] == 0)).sum())
            place = np.searchsorted(_BOUNDS, numbers, side="right")
            bits = np.where(numbers > 0, np.left_shift(np.uint16(1), place.astype(np.uint16)), 0).astype(np.uint16)
            steps += int(((bits & ~self._steps[name]) != 0).sum())
            self._steps[name] |= bits
            self.sums[name] += numbers
        return arcs, steps

    @property
    def arcs(self) -> int:
        """How many of the counted arcs have run."""
        return sum(int((numbers > 0).sum()) for numbers in self.sums.values())

    @property
    def all_arcs(self) -> int:
        """How many arcs are counted."""
        return sum(len(numbers) for numbers in self.sums.values())


def choose(entries: list[Entry], draw: random.Random) -> Entry:
    """An entry to change further: those that reached new lines and were seldom chosen are likelier."""
    weights = [(1.0 + min(each.new, 20)) / (1.0 + each.chosen) for each in entries]
    return draw.choices(entries, weights)[0]
