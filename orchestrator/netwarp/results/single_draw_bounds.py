"""Bounds for numbers that were drawn only once, taken from repeated cells of the same kind in the run.

A comparison of cells that ran with one seed has no confidence interval of its own. Repeated cells of the same kind show
how far one draw may be from another. Moving every single-draw number by the largest such distance, all in the
unfavourable direction at once, gives bounds. A verdict that holds within them does not depend on the draw. Without
repeated cells of the kind nothing is known, and nothing is decided.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from ..core.types import Cell, OptionValue
from .contrasts import Contrast
from .run_results import Results

Kind = tuple[object, ...]
"""Cells of one kind have similar draws: the same hosts and flows, and either faults or none; rates and times may
differ.
"""


@dataclass(frozen=True, slots=True)
class Spread:
    """The largest distance of a draw from another among the repeated combinations of a kind.

    relative: divided by their mean; absolute: used for values of 0. combinations: how many were examined. widest: the
    cell (repetition 0) of the combination with the largest relative distance.
    """

    relative: float
    absolute: float
    combinations: int
    widest: str

    def __or__(self, other: Spread) -> Spread:
        """The wider of both, over all combinations of both."""
        wider = max(self, other, key=lambda spread: spread.relative)
        both = self.combinations + other.combinations
        return Spread(wider.relative, max(self.absolute, other.absolute), both, wider.widest)


@dataclass(frozen=True, slots=True)
class Bounds:
    """The range of a statistic with other draws. widest: the largest spread used; None: no number was moved."""

    low: float
    high: float
    widest: Spread | None


WATCHING = "sample_interval_ns"


def kind_of(cell: Cell) -> Kind:
    """A cell's kind."""
    flows = tuple(
        (
            flow.protocol,
            len(flow.paths),
            len(flow.switches),
            flow.heartbeats is not msgspec.UNSET,
            _options(flow.sender_options),
            _options(flow.receiver_options),
        )
        for flow in cell.flows
    )
    nodes = tuple((node.name, *sorted(node.sysctls.items())) for node in cell.nodes)
    return flows, nodes, bool(cell.timeline)


def _options(options: Mapping[str, OptionValue]) -> tuple[tuple[str, OptionValue], ...]:
    return tuple(sorted((name, value) for name, value in options.items() if name != WATCHING))


def spreads(results: Results, flow: str, metric: str) -> dict[Kind, Spread]:
    """Kind -> the largest distances among its repeated combinations."""
    combinations: dict[tuple[str, ...], list[Cell]] = {}
    for cell in results.plan.cells:
        combinations.setdefault(tuple(cell.factors.values()), []).append(cell)
    by_kind: dict[Kind, Spread] = {}
    for cells in combinations.values():
        values = list(results.repeated(cells, flow, metric).values.values()) if len(cells) > 1 else []
        if len(values) < 2 or not (results.on_wall_clock or any(cell.random for cell in cells)):
            continue
        mean, distance = math.fsum(values) / len(values), max(values) - min(values)
        kind = kind_of(cells[0])
        spread = Spread(distance / abs(mean) if mean else 0.0, distance, 1, results.name(cells[0]))
        by_kind[kind] = by_kind[kind] | spread if kind in by_kind else spread
    return by_kind


def bounds(comparison: Contrast, known: Mapping[Kind, Spread]) -> Bounds | None:
    """The lowest and the highest value of the statistic with other draws, for one repetition; None: not known.

    Each random number is moved alone: the effects are added up, and the statistic is taken with all numbers moved at
    once, each in the direction in which it alone raises (or lowers) it. The wider of both counts: the sum is too small
    for a quotient. Raises ZeroDivisionError, also where a number that is divided by may be 0 on the way.
    """
    if len(comparison.repetitions()) != 1:
        return None
    (row,) = comparison.rows()
    middle = comparison.statistic(row)
    low = high = middle
    raised, lowered = list(row), list(row)
    widest: Spread | None = None
    for number, place in enumerate(comparison.places):
        if not place.random:
            continue
        spread = known.get(kind_of(place.cells[0]))
        if spread is None:
            return None
        distance = abs(row[number]) * spread.relative or (0.0 if row[number] else spread.absolute)
        widest = spread if widest is None or spread.relative > widest.relative else widest
        ends = [row[number] - distance, row[number] + distance]
        ends += [0.0] if ends[0] < 0 < ends[1] else []
        moved = {end: comparison.statistic([*row[:number], end, *row[number + 1 :]]) for end in ends}
        low -= max(0.0, *(middle - value for value in moved.values()))
        high += max(0.0, *(value - middle for value in moved.values()))
        lowered[number], raised[number] = min(moved, key=moved.__getitem__), max(moved, key=moved.__getitem__)
    # numbers above 0 that would be moved below may all be 0: a sum of them then is, beside which each alone is not
    at_zero = [[_not_below(value, drawn) for value, drawn in zip(each, row, strict=True)] for each in (lowered, raised)]
    joint = [comparison.statistic(each) for each in (lowered, raised, *at_zero)]
    return Bounds(min(low, *joint), max(high, *joint), widest)


def _not_below(value: float, drawn: float) -> float:
    return max(value, 0.0) if drawn > 0 else value
