"""Figures over time and tables of events: rows from the cells' derived files. One run is shown: repetition 0."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..core.outputs import EventTable, TimeSeries
from ..core.types import Cell, CellOutcome, Outcome
from ..plan.types import Plan, Selection
from ..store.run_dir import RunDir, read_json
from .rows import Field, Rows

SERIES_COLUMNS = ("path", "series", "unit", "t_s", "value")
EVENT_COLUMNS = ("near", "t_s", "event", "node", "link", "path", "type", "number", "bytes", "note")
UNITS = (("_bytes", "bytes"), ("_bit_s", "bit/s"), ("packets_s", "packets/s"), ("_s", "s"))
BINNED = ("goodput_bit_s", "packets_s", "data_packets_s", "control_packets_s")
"""Binned series of a flow; throughput is binned by path."""


def series_unit(name: str) -> str:
    """The unit of a series, which its name ends in."""
    return next(unit for suffix, unit in UNITS if name.endswith(suffix))


def series_rows(plan: Plan, outcomes: Mapping[str, CellOutcome], run: RunDir, figure: TimeSeries) -> Rows:
    """One row a value. Of sampled series only the samples that differ from the one before (each holds until the next)
    and the last; of binned ones the beginning of each bin.
    """
    rows: list[tuple[Field, ...]] = []
    low, high = (end / 1e9 for end in figure.window_ns) if figure.window_ns else (float("-inf"), float("inf"))
    several = len(figure.flows) > 1
    for cell, head in _cells(plan, outcomes, figure):
        series_of_cell = read_json(run.cell(cell.id).series, dict[str, Any])
        for name, series in itertools.product(figure.flows, figure.series):
            flow = series_of_cell["flows"].get(name, {})
            named = (*head, name) if several else head
            unit = series_unit(series)
            for path, times, values in _curves(flow, series, series_of_cell["bin_s"]):
                inside = [(t, v) for t, v in zip(times, values, strict=True) if v is not None and low <= t <= high]
                rows += [(*named, path, series, unit, t, float(v)) for t, v in inside]
    flows = ("flow",) if several else ()
    return Rows(figure.name, ("cell_id", *_factors(plan), *flows, *SERIES_COLUMNS), tuple(rows))


def event_rows(plan: Plan, outcomes: Mapping[str, CellOutcome], run: RunDir, table: EventTable) -> Rows:
    """One row a packet (or event of the timeline) next to one of the moments of the table, in the order of time."""
    rows: list[tuple[Field, ...]] = []
    for cell, head in _cells(plan, outcomes, table):
        packets = read_json(run.cell(cell.id).exchange, dict[str, list[dict[str, Any]]])
        for row in packets.get(table.flow, ()):
            places: dict[str, int] = row["moments"]
            near = [name for name in table.around if -table.packets <= places.get(name, 99) < table.packets]
            if near:
                rows.append((*head, " ".join(near), *(row[column] for column in EVENT_COLUMNS[1:])))
    return Rows(table.name, ("cell_id", *_factors(plan), *EVENT_COLUMNS), tuple(rows))


def _factors(plan: Plan) -> list[str]:
    return [factor.name for factor in plan.factors]


def _cells(
    plan: Plan, outcomes: Mapping[str, CellOutcome], output: TimeSeries | EventTable
) -> Iterator[tuple[Cell, tuple[Field, ...]]]:
    """The cells shown, each with the first columns of its rows."""
    selection = Selection(plan)
    for cell in plan.cells:
        if cell.repetition or not selection.has(cell, output.where):
            continue
        name = cell.id  # a hash of the whole cell: made once
        outcome = outcomes.get(name)
        if outcome is not None and outcome.outcome is Outcome.COMPLETED:
            yield cell, (name, *(cell.factors[factor] for factor in _factors(plan)))


def _curves(
    flow: Mapping[str, Any], series: str, bin_s: float
) -> Iterator[tuple[str, Sequence[float], Sequence[float | None]]]:
    """(path, times, values) of every path that has the series; an empty path is the flow's."""
    if series in (*BINNED, "throughput_bit_s"):
        curves = (
            {"": flow.get(series, [])}
            if series in BINNED
            else {path: columns[series] for path, columns in flow.get("paths", {}).items()}
        )
        for path, values in curves.items():
            yield path, [number * bin_s for number in range(len(values))], values
        return
    for path, columns in flow.get("samples", {}).items():
        if series in columns:
            yield path, *_changes(columns["t_s"], columns[series])


def _changes(times: Sequence[float], values: Sequence[float | None]) -> tuple[list[float], list[float | None]]:
    """The first value, those that differ from the one before, and the last."""
    kept = [
        number
        for number, (before, value) in enumerate(itertools.pairwise([object(), *values]))
        if value != before or number == len(values) - 1
    ]
    return [times[number] for number in kept], [values[number] for number in kept]
