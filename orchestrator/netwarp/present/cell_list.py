"""The list of cells: one row per cell, with columns to filter and to sort by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..core.metrics.catalogue import HEADLINE
from ..core.numbers import decimals, fixed, scale
from ..core.types import BACK
from .html import UNKNOWN as UNKNOWN_OUTCOME
from .html import file_name
from .run_data import RunData, heading
from .style import OUTCOMES

ROWS_AT_ONCE = 200
"""Rows in the page from the start; the page's script adds the others when the reader scrolls to them."""

MOST_FACTORS, MOST_COLUMNS, MOST_RESULTS = 5, 8, 4
"""Factors that have a column each in the list; columns that a screen has room for; results of them."""

GOODPUT = "goodput_bit_s"
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
    can be filtered by). together: the first column has all levels.
    """

    headings: tuple[str, ...]
    rows: tuple[CellRow, ...]
    filters: Mapping[int, tuple[str, ...]]
    scripts: Mapping[str, str]
    outcomes: tuple[str, ...]
    numeric: tuple[int, ...]
    shown: int
    together: bool


def make_listing(data: RunData) -> Listing:
    """Columns: experiment and repetition if there are several, factors that vary (one column of all levels where there
    is no room for one each: most cells have few of them), and results.
    """
    factors = [
        factor.name
        for factor in data.plan.factors
        if len({result.cell.factors.get(factor.name, "-") for result in data.cells}) > 1
    ]
    experiments = {experiment.name: experiment.title for experiment in data.plan.experiments}
    several = len({result.cell.experiment for result in data.cells}) > 1
    repeated = data.plan.repetitions > 1
    shown = _results(data)
    metrics = list(shown)
    columns: dict[str, tuple[float, str, int]] = {}
    for name in metrics:
        own = data.metrics[name].unit
        # times that stand side by side are in one unit
        alike = [value for other in metrics if data.metrics[other].unit == own for value in shown[other]]
        divisor, unit = scale(alike if own == "s" else shown[name], own)
        columns[name] = divisor, unit, decimals(value and value / divisor for value in shown[name])
    # a column is sorted as the spec lists the levels
    order = {(f.name, level.name): float(n) for f in data.plan.factors for n, level in enumerate(f.levels)}
    one_column = len(factors) > MOST_FACTORS or several + len(factors) + repeated + len(metrics) > MOST_COLUMNS
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
            value = shown[name][number]
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
    of_results = [heading(_title(data, name, of_levels), columns[name][1]) for name in metrics]
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
    return Listing(tuple(headings), tuple(rows), filters, scripts, outcomes, numeric, shown_columns, one_column)


def _results(data: RunData) -> dict[str, list[float | None]]:
    """Metric -> a value each cell: those of HEADLINE, then what the spec's tables and figures show, where a cell has
    one value; of goodput its sum over flows that run together.
    """
    tables, figures = data.plan.tables, data.plan.figures
    wanted = [*HEADLINE, *(table.metric for table in tables), *(figure.metric for figure in figures)]
    there = {metric for (_, metric), value in data.only.items() if value is not None}
    sums = _sums(data)
    found: dict[str, list[float | None]] = {}
    for name in dict.fromkeys(wanted):
        if name == GOODPUT and sums:
            found[name] = [sums.get(result.id) for result in data.cells]
        elif name in there:
            found[name] = [_shown(data, result.id, name) for result in data.cells]
    some = [name for name, values in found.items() if any(value is not None for value in values)]
    return {name: found[name] for name in some[:MOST_RESULTS]}


def _sums(data: RunData) -> dict[str, float]:
    """Cell id -> goodput of all its flows; {} where each cell has one flow, or some flows run at other times than
    others: then it is no rate.
    """
    if any(len({(flow.start_ns, flow.stop_ns) for flow in result.cell.flows}) > 1 for result in data.cells):
        return {}
    of: dict[str, list[float]] = {}
    for (cell_id, flow, metric), value in data.values.items():
        if metric == GOODPUT and value is not None and not flow.endswith(BACK):
            of.setdefault(cell_id, []).append(value)
    return {cell_id: sum(each) for cell_id, each in of.items()} if any(len(each) > 1 for each in of.values()) else {}


def _title(data: RunData, name: str, factors: Iterable[str]) -> str:
    """A result's heading, which no factor beside it has."""
    title = f"{data.metrics[name].title} of all flows" if name == GOODPUT and _sums(data) else data.metrics[name].title
    return f"measured {title}" if title in factors else title


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
