"""Runs for tests of results: a plan with given measurements, and tables as their CSV files have them."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence

from netwarp.core.types import CellOutcome, Measurement, Outcome
from netwarp.plan import make_plan
from netwarp.plan.types import Plan
from netwarp.results import Results
from netwarp.results.rows import Rows
from netwarp.results.write import csv_text

from support.specs import BASE, spec_of

DONE = CellOutcome(Outcome.COMPLETED, "", 1.0, 1.0)
TWO_LEVELS = '[factor.x]\nlevels = ["1 s", "2 s"]\n'
ONE_LEVEL = '[factor.x]\nlevels = ["1 s"]\n'
LOSS = '[link.p2]\nbetween = ["a", "b"]\nloss = "1 %"\n'
"""A second link that loses packets at random: cells with it are random."""


def completed(plan: Plan) -> dict[str, CellOutcome]:
    """Every cell of the plan has completed."""
    return {cell.id: DONE for cell in plan.cells}


def one_factor_run(
    values: Sequence[float | None], *, random: bool = True, seed: int = 1, levels: str = TWO_LEVELS, more: str = "",
    metric: str = "packets", unit: str = "packets", others: Mapping[str, float] | None = None,
) -> Results:  # fmt: skip
    """A run of one factor: the values of its first level, repetition by repetition, then those of the next.

    more: added to the spec. others: metrics in s that have the same value in every cell.
    """
    text = BASE.replace('delay = "20 ms"', 'delay = "20 ms"\nloss = "1 %"') if random else BASE
    plan = make_plan(spec_of(text + levels + more), seed=seed, repetitions=len(values) // (levels.count('"') // 2 or 1))
    ordered = sorted(plan.cells, key=lambda cell: list(cell.factors.values()))
    measured = [Measurement(cell.id, "f", metric, value, unit) for cell, value in zip(ordered, values, strict=True)]
    measured += [
        Measurement(cell.id, "f", name, value, "s") for cell in plan.cells for name, value in (others or {}).items()
    ]
    return Results(plan, completed(plan), measured)


def text_rows(table: Rows) -> list[dict[str, str]]:
    """The rows of a table as its CSV file has them."""
    return list(csv.DictReader(io.StringIO(csv_text(table))))
