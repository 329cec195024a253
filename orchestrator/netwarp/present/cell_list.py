"""The list of cells: one row per cell, with columns to filter and to sort by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..core.metrics.catalogue import HEADLINE
from ..core.numbers import decimals, fixed, scale
from .html import UNKNOWN as UNKNOWN_OUTCOME
from .html import file_name
from .run_data import RunData, heading
from .style import OUTCOMES

ROWS_AT_ONCE = 200
"""Rows in the page from the start; the page's script adds the others when the reader scrolls to them."""

MOST_FACTORS = 5
"""Factors that have a column each in the list."""

Field = tuple[str, float | None]
"""One field of a row: its text, and the number by which it is sorted (None: by the text)."""


@dataclass(frozen=True, slots=True)
class CellRow:
    """A cell in the list."""

    id: str
    label: str
    outcome: str
    reason: str
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Listing:
    """headings: of the fields; filters: index of a field -> its distinct texts; scripts: cell id -> its script file.
    numeric: indices of fields that are results; shown: how many of the fields, from the first, are columns (the others
    can be filtered by).
    """

    headings: tuple[str, ...]
    rows: tuple[CellRow, ...]
    filters: Mapping[int, tuple[str, ...]]
    scripts: Mapping[str, str]
    outcomes: tuple[str, ...]
    numeric: tuple[int, ...]
    shown: int


def make_listing(data: RunData) -> Listing:
    """Columns: experiment and repetition if there are several, factors that vary (one column of levels where they are
    more than MOST_FACTORS: most cells have few of them), the metrics of HEADLINE.
    """
    factors = [
        factor.name
        for factor in data.plan.factors
        if len({result.cell.factors.get(factor.name, "-") for result in data.cells}) > 1
    ]
    experiments = {experiment.name: experiment.title for experiment in data.plan.experiments}
    several = len({result.cell.experiment for result in data.cells}) > 1
    repeated = data.plan.repetitions > 1
    metrics = [
        name
        for name in HEADLINE
        if any(name == metric for (_, metric), value in data.only.items() if value is not None)
    ]
    shown = {name: [_shown(data, result.id, name) for result in data.cells] for name in metrics}
    metrics = [name for name in metrics if any(value is not None for value in shown[name])]
    columns: dict[str, tuple[float, str, int]] = {}
    for name in metrics:
        own = data.metrics[name].unit
        # times that stand side by side are in one unit
        alike = [value for other in metrics if data.metrics[other].unit == own for value in shown[other]]
        divisor, unit = scale(alike if own == "s" else shown[name], own)
        columns[name] = divisor, unit, decimals(value and value / divisor for value in shown[name])
    # a column is sorted as the spec lists the levels
    order = {(f.name, level.name): float(n) for f in data.plan.factors for n, level in enumerate(f.levels)}
    one_column = len(factors) > MOST_FACTORS
    rows = []
    for number, result in enumerate(data.cells):
        cell = result.cell
        levels: list[Field] = [(cell.experiment, None)] if several else []
        for factor in factors:
            level = cell.factors.get(factor, "-")
            text = "" if level == "-" else data.plan.level_title(factor, level)
            levels.append((text, order.get((factor, level), float("inf"))))
        repetition: list[Field] = [(str(cell.repetition), float(cell.repetition))] if repeated else []
        results: list[Field] = []
        for name in metrics:
            value = _shown(data, result.id, name)
            divisor, _, places = columns[name]
            whole = data.metrics[name].unit == "packets"
            results.append(("" if value is None else fixed(value / divisor, 0 if whole else places), value))
        words = [data.plan.level_title(factor, level) for factor, level in cell.factors.items() if level != "-"]
        words += [f"repetition {cell.repetition}"] if repeated else []
        label = ", ".join(words) or experiments.get(cell.experiment, result.id)
        if one_column:
            together = ", ".join(text for text, _ in levels[several:] if text)
            fields = [(together, float(number)), *repetition, *results, *levels]
        else:
            fields = [*levels, *repetition, *results]
        rows.append(CellRow(result.id, label, result.outcome, result.reason, tuple(fields)))
    of_levels = [*(["experiment"] if several else []), *(data.plan.factor_title(factor) for factor in factors)]
    of_repetition = ["repetition"] if repeated else []
    of_results = [heading(data.metrics[name].title, columns[name][1]) for name in metrics]
    if one_column:
        headings = ["levels", *of_repetition, *of_results, *of_levels]
        first = 1 + repeated
        filtered = [*range(1, first), *range(first + len(metrics), len(headings))]
    else:
        headings = [*of_levels, *of_repetition, *of_results]
        first = len(of_levels) + repeated
        filtered = [*range(first)]
    filters = {
        index: tuple(dict.fromkeys(row.fields[index][0] for row in rows if row.fields[index][0])) for index in filtered
    }
    numeric = tuple(range(first, first + len(metrics)))
    shown_columns = first + len(metrics)
    scripts = {result.id: f"{file_name(result.id)}.js" for result in data.cells}
    outcomes = tuple(dict.fromkeys(row.outcome for row in rows))
    return Listing(tuple(headings), tuple(rows), filters, scripts, outcomes, numeric, shown_columns)


def _shown(data: RunData, cell_id: str, name: str) -> float | None:
    """The value in the list. The recovery time of a flow that had moved to another path is no recovery, but the wait
    for whatever came next.
    """
    moved = name == "recovery_time_s" and data.only.get((cell_id, "first_useful_arrival_other_path_s")) is not None
    return None if moved else data.only.get((cell_id, name))


def listing_data(listing: Listing) -> dict[str, Any]:
    """The list for the page's script: columns of distinct fields [text, number it sorts by], and each row's of them."""
    names = {name: place for place, name in enumerate(listing.outcomes)}
    columns = []
    for number in range(len(listing.headings)):
        words: dict[Field, int] = {}
        of = [words.setdefault(row.fields[number], len(words)) for row in listing.rows]
        columns.append({"words": list(words), "of": of, "number": number in listing.numeric})
    return {
        "at_once": ROWS_AT_ONCE,
        "headings": listing.headings,
        "shown": listing.shown,
        "ids": [row.id for row in listing.rows],
        "labels": [row.label for row in listing.rows],
        "outcomes": [[name, *OUTCOMES.get(name, UNKNOWN_OUTCOME)] for name in listing.outcomes],
        "outcome": [names[row.outcome] for row in listing.rows],
        "reasons": {number: row.reason for number, row in enumerate(listing.rows) if row.reason},
        "columns": columns,
        "scripts": {cell: script for cell, script in listing.scripts.items() if script != f"{cell}.js"},
    }


def spans(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Ascending numbers as pairs (first, last) of runs without a gap."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1] = runs[-1][0], number
        else:
            runs.append((number, number))
    return runs
