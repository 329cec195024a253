"""The numbers of a table or figure from tables/<name>.csv: measured and published ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..core.outputs import FLOW, Figure, Table
from ..store.tables import number
from .run_data import Row, RunData


@dataclass(frozen=True, slots=True)
class Entry:
    """One place of a table: its levels, the number measured there (base unit), and the sources' numbers.

    low, high: 95 % confidence interval over n repetitions, None if there is none. without: how many more had no value.
    spread: deterministic, single or ci95, or the statistic that was asked for. note: what is missing. cells: ids of the
    cells of this place, completed or not.
    """

    levels: tuple[str, ...]
    value: float | None
    low: float | None
    high: float | None
    n: int
    without: int
    spread: str
    note: str
    references: Mapping[str, float]
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Entries:
    """Every number of a table or figure over `factors`; `sources`: those that say anything here, in plan order, and the
    metrics that stand beside it.
    """

    factors: tuple[str, ...]
    entries: tuple[Entry, ...]
    sources: tuple[str, ...]
    printed: Mapping[str, str]
    """source -> where it prints them ("Table 5")."""


def read_entries(data: RunData, output: Table | Figure) -> Entries:
    """Put the rows of tables/<name>.csv beside the cells they came from."""
    factors = output.axes
    sources = (*(source.name for source in data.plan.sources), *output.beside)
    places: dict[tuple[str, ...], list[str]] = {}
    results = [result for result in data.cells if data.selection.has(result.cell, output.where)]
    for result in results:
        for flow in [each.name for each in result.cell.flows] if FLOW in factors else [""]:
            places.setdefault(levels_of({**result.cell.factors, FLOW: flow}, factors), []).append(result.id)
    entries = tuple(_entry(row, factors, sources, places) for row in data.tables.get(data.plan.rows_of(output), ()))
    used = tuple(source for source in sources if any(source in entry.references for entry in entries))
    printed = {
        expected.source: expected.printed
        for expected in reversed(data.plan.expected)
        if expected.metric == output.metric
        and expected.printed
        and any(data.selection.has(result.cell, expected.at) for result in results)
    }
    return Entries(factors, entries, used, printed)


def levels_of(factors: Mapping[str, str], names: Sequence[str]) -> tuple[str, ...]:
    """A cell's levels of some factors, "-" if one does not apply."""
    return tuple(factors.get(factor, "-") for factor in names)


def _entry(
    row: Row, factors: tuple[str, ...], sources: tuple[str, ...], places: Mapping[tuple[str, ...], Sequence[str]]
) -> Entry:
    levels = levels_of(row, factors)
    return Entry(
        levels=levels,
        value=number(row.get("value")),
        low=number(row.get("ci95_low")),
        high=number(row.get("ci95_high")),
        n=int(number(row.get("repetitions")) or 0),
        without=int(number(row.get("without_value")) or 0),
        spread=row.get("spread") or "",
        note=row.get("note") or "",
        references={source: value for source in sources if (value := number(row.get(source))) is not None},
        cells=tuple(places.get(levels, ())),
    )
