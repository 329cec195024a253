"""How far another draw could be, where there is only one: borrowed from repeated cells of the same kind in the run.

A comparison of cells that were drawn once has no interval of its own. Cells of its kind (protocol, number of paths,
faults or none) that were repeated show how far one draw lies from another; moving every drawn number by the farthest
that was seen, all in the unfavourable direction at once, gives bounds. A verdict that stands within them does not hang
on the draw. Without repeated cells of the kind nothing is known, and nothing is decided.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ..model import Cell
from .comparisons import Comparison
from .results import Results

Kind = tuple[tuple[tuple[str, int], ...], bool]
"""(protocol, number of paths) of each flow, and whether anything happens."""


def kind_of(cell: Cell) -> Kind:
    """What makes a cell's draws alike."""
    return tuple((flow.protocol, len(flow.paths)) for flow in cell.flows), bool(cell.timeline)


def spreads(results: Results, flow: str, metric: str) -> dict[Kind, float]:
    """Kind -> the largest distance of a draw from another, over their mean, of any combination that was repeated."""
    combinations: dict[tuple[str, ...], list[Cell]] = {}
    for cell in results.plan.cells:
        combinations.setdefault(tuple(cell.factors.values()), []).append(cell)
    found: dict[Kind, float] = {}
    for cells in combinations.values():
        values = list(results.place(cells, flow, metric).values.values())
        if len(values) < 2 or not any(cell.random for cell in cells):
            continue
        mean = math.fsum(values) / len(values)
        kind = kind_of(cells[0])
        farthest = (max(values) - min(values)) / abs(mean) if mean else math.inf
        found[kind] = max(found.get(kind, 0.0), farthest)
    return found


def bounds(comparison: Comparison, known: Mapping[Kind, float]) -> tuple[float, float, float] | None:
    """(lowest, highest) the statistic may be with another draw, and the largest spread used; None: not known.

    Of one repetition. Each random number is moved alone, and what the moves do is added up: as bad as they could fall
    together. Raises ZeroDivisionError.
    """
    repetitions = comparison.repetitions()
    if len(repetitions) != 1:
        return None
    (row,) = comparison.rows()
    middle = comparison.statistic(row)
    low = high = middle
    largest = 0.0
    for number, place in enumerate(comparison.places):
        if not place.random:
            continue
        spread = known.get(kind_of(place.cells[0]))
        if spread is None or math.isinf(spread):
            return None
        largest = max(largest, spread)
        moved = [comparison.statistic(_with(row, number, row[number] * (1 + sign * spread))) for sign in (-1, 1)]
        low -= max(0.0, *(middle - value for value in moved))
        high += max(0.0, *(value - middle for value in moved))
    return low, high, largest


def _with(row: Sequence[float], number: int, value: float) -> list[float]:
    return [*row[:number], value, *row[number + 1 :]]
