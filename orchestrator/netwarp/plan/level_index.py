"""Combinations of levels by level: those that a selector matches are found without looking at all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..core.outputs import ANY_LEVEL, EXPERIMENT, FLOW, Levels
from .combine import Combination

NO_LEVEL = "-"
"""Of a factor that a combination does not have."""


class LevelIndex:
    """Finds the combinations that matches() (core/outputs.py) accepts, in their order.

    For each level of each factor a set of combinations, as the bits of a number: a selector costs one operation a
    level, where a comparison with each combination cost claims x cells.
    """

    def __init__(self, everything: Sequence[tuple[Sequence[str], Combination]]) -> None:
        """everything: each combination with the names of the experiments that have it."""
        self._combinations = [levels for _, levels in everything]
        self._all = (1 << len(everything)) - 1
        self._experiments: dict[str, int] = {}
        self._levels: dict[str, dict[str, int]] = {}
        for at, (experiments, levels) in enumerate(everything):
            for name in experiments:
                self._experiments[name] = self._experiments.get(name, 0) | 1 << at
            for factor, level in levels.items():
                having = self._levels.setdefault(factor, {})
                having[level] = having.get(level, 0) | 1 << at

    def where(self, selector: Levels) -> list[Combination]:
        """The combinations that match a selector."""
        bits = self._bits(selector)
        found = []
        while bits:
            lowest = bits & -bits
            found.append(self._combinations[lowest.bit_length() - 1])
            bits ^= lowest
        return found

    def count(self, selector: Levels) -> int:
        """How many match."""
        return self._bits(selector).bit_count()

    def _bits(self, selector: Levels) -> int:
        found = self._all
        for factor, levels in selector.items():
            if factor == EXPERIMENT:
                found &= _union(self._experiments, levels)
                continue
            having = self._levels.get(factor, {})
            without = self._all & ~_union(having, tuple(having))
            fitting = _union(having, levels)
            if NO_LEVEL in levels:
                fitting |= without
            if ANY_LEVEL in levels:
                fitting |= self._all & ~without & ~having.get(NO_LEVEL, 0)
            found &= (fitting | without) if factor == FLOW else fitting
        return found


def _union(sets: Mapping[str, int], names: Sequence[str]) -> int:
    together = 0
    for name in names:
        together |= sets.get(name, 0)
    return together
