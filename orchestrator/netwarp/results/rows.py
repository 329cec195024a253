"""Plan, outcomes and measurements -> the rows of every table. Pure: a header and tuples, nothing is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..core.outputs import Figure, Table
from ..core.types import Cell
from ..plan.types import Plan, Selection, in_level_order
from .claims import Judged
from .run_results import Results

Field = str | int | float | None
CELL_COLUMNS = ("cell_id", "experiment", "repetition", "seed", "outcome", "reason", "virtual_s")
MEASUREMENT_COLUMNS = ("cell_id", "flow", "metric", "value", "unit")
CLAIM_COLUMNS = ("claim", "verdict", "measured", "expected", "unit", "source")
DETAIL_COLUMNS = ("claim", "text", "kind", "metric", "tolerance", "reason")
PLACE_COLUMNS = ("value", "unit", "spread", "repetitions", "ci95_low", "ci95_high", "note")
DRAW_COLUMNS = ("repetition", "seed", "value", "unit", "note", "cell_id")
NOT_RUN = "NOT_RUN"


@dataclass(frozen=True, slots=True)
class Rows:
    """A table: its name (the file is <name>.csv), header and rows."""

    name: str
    header: tuple[str, ...]
    rows: tuple[tuple[Field, ...], ...]


def cell_rows(results: Results) -> Rows:
    """cells.csv: every cell of the plan; one without an outcome is NOT_RUN."""
    factors = [factor.name for factor in results.plan.factors]
    rows: list[tuple[Field, ...]] = []
    for cell in results.plan.cells:
        outcome = results.outcomes.get(cell.id)
        ended: tuple[Field, ...] = (
            (NOT_RUN, "", None) if outcome is None else (str(outcome.outcome), outcome.reason, outcome.virtual_s)
        )
        levels = (cell.factors[name] for name in factors)
        rows.append((cell.id, cell.experiment, cell.repetition, cell.seed, *ended, *levels))
    return Rows("cells", (*CELL_COLUMNS, *factors), tuple(rows))


def measurement_rows(results: Results) -> Rows:
    """measurements.csv: every measurement of every COMPLETED cell; an empty value: there was nothing to measure."""
    rows = tuple(
        (one.cell_id, one.flow, one.metric, one.value, one.unit)
        for cell in results.plan.cells
        for one in results.by_cell[cell.id]
    )
    return Rows("measurements", MEASUREMENT_COLUMNS, rows)


def claim_rows(judged: Sequence[Judged]) -> Rows:
    """claims.csv, in the columns of the contract."""
    rows = tuple((one.claim.id, one.verdict, one.measured, one.expected, one.unit, one.claim.source) for one in judged)
    return Rows("claims", CLAIM_COLUMNS, rows)


def detail_rows(judged: Sequence[Judged], others: Mapping[str, Mapping[str, float]]) -> Rows:
    """claim_details.csv: what is claimed, how it is tested, and why the verdict is what it is.

    others: source -> claim -> what it comes to from the source's own numbers.
    """
    rows = tuple(
        (
            one.claim.id,
            one.claim.text,
            one.claim.kind,
            one.claim.metric,
            one.claim.tolerance,
            one.reason,
            *(numbers.get(one.claim.id) for numbers in others.values()),
        )
        for one in judged
    )
    return Rows("claim_details", (*DETAIL_COLUMNS, *others), rows)


def place_rows(results: Results, wanted: Table | Figure) -> Rows:
    """A table or figure: one row a place, measured and beside it every source's number for the same place.

    value: mean over the repetitions. spread: deterministic, single (one draw of something random), equal in n draws, or
    ci95. note: what is missing of it. A source has a number here if it has exactly one for all the cells of the place.
    Last, the means of the metrics that stand beside it.
    """
    plan = results.plan
    axes = wanted.axes
    unit = next((metric.unit for metric in plan.metrics if metric.name == wanted.metric), "")
    sources = [source.name for source in plan.sources]
    rows: list[tuple[Field, ...]] = []
    selection = Selection(plan)
    for levels, cells in _places(results, wanted, axes):
        place = results.place(cells, wanted.flow, wanted.metric)
        found = place.estimate()
        number: tuple[Field, ...] = (
            (None, unit, "", 0, None, None)
            if found is None
            else (found.mean, unit, found.said, found.n, found.low, found.high)
        )
        others = (_published(plan, selection, source, wanted.metric, cells) for source in sources)
        rows.append((*levels, *number, place.missing, *others, *_beside(results, wanted, cells)))
    return Rows(wanted.name, (*axes, *PLACE_COLUMNS, *sources, *wanted.beside), tuple(rows))


def _beside(results: Results, wanted: Table | Figure, cells: Sequence[Cell]) -> Iterator[float | None]:
    """The means of the metrics that stand beside the wanted one, of the same cells."""
    for metric in wanted.beside:
        found = results.place(cells, wanted.flow, metric).estimate()
        yield None if found is None else found.mean


def draw_rows(results: Results, figure: Figure) -> Rows:
    """A distribution: one row a cell that was to be drawn, so that a reader can make any other picture of it.

    An empty value has its reason in `note`.
    """
    axes = figure.axes
    unit = next((metric.unit for metric in results.plan.metrics if metric.name == figure.metric), "")
    rows: list[tuple[Field, ...]] = []
    for levels, cells in _places(results, figure, axes):
        for cell in cells:
            place = results.place([cell], figure.flow, figure.metric)
            value = place.values.get(cell.repetition)
            rows.append((*levels, cell.repetition, cell.seed, value, unit, place.missing, cell.id))
    return Rows(figure.name, (*axes, *DRAW_COLUMNS), tuple(rows))


def _places(
    results: Results, wanted: Table | Figure, axes: Sequence[str]
) -> Iterator[tuple[tuple[str, ...], list[Cell]]]:
    """The cells of each place, in the order of the factors' levels ("-" first)."""
    places: dict[tuple[str, ...], list[Cell]] = {}
    for cell in results.cells(wanted.where):
        places.setdefault(tuple(cell.factors[axis] for axis in axes), []).append(cell)
    for levels in in_level_order(results.plan, axes, places):
        yield levels, places[levels]


def _published(plan: Plan, selection: Selection, source: str, metric: str, cells: Sequence[Cell]) -> float | None:
    values = {
        one.value
        for one in plan.expected
        if one.source == source and one.metric == metric and all(selection.has(cell, one.at) for cell in cells)
    }
    return values.pop() if len(values) == 1 else None
