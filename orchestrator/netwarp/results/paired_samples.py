"""The draws of one number in two runs: independent ones, or pairs that met the same losses."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass

from .compare import welch
from .run_results import RepeatedValue


@dataclass(frozen=True, slots=True)
class Draws:
    """The values of both sides. paired: the values of one row met the same losses."""

    x: list[float]
    y: list[float]
    paired: bool

    @property
    def least_p(self) -> float:
        """The smallest p-value that a permutation test with so many random draws could give."""
        return 2 / (2 ** len(self.x) if self.paired else math.comb(len(self.x) + len(self.y), len(self.y)))

    def gap(self) -> tuple[float, float, int]:
        """Difference of the means (y - x), its variance, degrees of freedom."""
        if not self.paired:
            return welch(self.x, self.y)
        gaps = [y - x for x, y in zip(self.x, self.y, strict=True)]
        return statistics.fmean(gaps), statistics.variance(gaps) / len(gaps), len(gaps) - 1


def draws_of(a: RepeatedValue, b: RepeatedValue) -> Draws:
    """The draws of one number; in pairs if links lose at random and the seeds are equal."""
    seeds_a, seeds_b = ({cell.repetition: cell.seed for cell in place.cells} for place in (a, b))
    both = [number for number in a.values if number in b.values and seeds_a[number] == seeds_b[number]]
    lossy = any(
        shape.loss_ratio or shape.burst_loss is not None
        for cell in a.cells[:1]
        for link in cell.links
        for shape in (link.forward, link.backward)
    )
    if lossy and len(both) > 1 and len(both) >= max(len(a.values), len(b.values)) - 1:
        return Draws([a.values[number] for number in both], [b.values[number] for number in both], True)
    return Draws(list(a.values.values()), list(b.values.values()), False)
