"""The rows of figures over time and of event tables, from the cells' derived files. Only repetition 0 is shown."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ..core.outputs import EventTable, TimeSeries
from ..core.types import Cell, CellOutcome, Outcome
from ..plan.types import Plan, Selection
from ..store.derived import CellSeries, Exchange, FlowSeries, Sampled
from ..store.run_dir import RunDir, read_json
from .rows import Field, Rows

SERIES_COLUMNS = ("path", "series", "unit", "t_s", "value")
EVENT_COLUMNS = ("near", "t_s", "event", "node", "link", "path", "type", "number", "bytes", "note")
UNITS = (("_bytes", "bytes"), ("_bit_s", "bit/s"), ("packets_s", "packets/s"), ("_s", "s"))
BINNED = ("goodput_bit_s", "packets_s", "data_packets_s", "control_packets_s")
"""Binned series of a flow; throughput is binned by path."""
NO_SERIES = FlowSeries(goodput_bit_s=(), paths={}, samples={}, states={})


def series_unit(name: str) -> str:
    """The unit of a series: the end of its name."""
    return next(unit for suffix, unit in UNITS if name.endswith(suffix))


def series_rows(plan: Plan, outcomes: Mapping[str, CellOutcome], run: RunDir, figure: TimeSeries) -> Rows:
    """One row per value. Of sampled series only samples that differ from the one before (each value holds until the
    next) and the last one; of binned series the beginning of each bin.
    """
    rows: list[tuple[Field, ...]] = []
    low, high = (end / 1e9 for end in figure.window_ns) if figure.window_ns else (float("-inf"), float("inf"))
    several = len(figure.flows) > 1
    for cell, head in _cells(plan, outcomes, figure):
        series_of_cell = read_json(run.cell(cell.id).series, CellSeries)
        for name, series in itertools.product(figure.flows, figure.series):
            flow = series_of_cell.flows.get(name, NO_SERIES)
            named = (*head, name) if several else head
            unit = series_unit(series)
            for path, points in _curves(flow, series, series_of_cell.bin_s):
                rows += [(*named, path, series, unit, t_s, float(v)) for t_s, v in points if low <= t_s <= high]
    flows = ("flow",) if several else ()
    return Rows(plan.rows_of(figure), ("cell_id", *_factors(plan), *flows, *SERIES_COLUMNS), tuple(rows))


def event_rows(plan: Plan, outcomes: Mapping[str, CellOutcome], run: RunDir, table: EventTable) -> Rows:
    """One row per packet (or event of the timeline) near one of the table's moments, sorted by time."""
    rows: list[tuple[Field, ...]] = []
    for cell, head in _cells(plan, outcomes, table):
        packets = read_json(run.cell(cell.id).exchange, Exchange)
        for row in packets.get(table.flow, ()):
            near = [name for name in table.around if -table.packets <= row.moments.get(name, 99) < table.packets]
            if near:
                rows.append((*head, " ".join(near), *(getattr(row, column) for column in EVENT_COLUMNS[1:])))
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


def _curves(flow: FlowSeries, series: str, bin_s: float) -> Iterator[tuple[str, Iterable[tuple[float, float]]]]:
    """(path, points) of every path that has the series; an empty path is the flow's."""
    if series in BINNED:
        yield "", _bins(getattr(flow, series), bin_s)
    elif series == "throughput_bit_s":
        yield from ((path, _bins(columns[series], bin_s)) for path, columns in flow.paths.items())
    else:
        yield from ((path, _changes(columns, series)) for path, columns in flow.samples.items() if series in columns)


def _bins(values: Sequence[float], bin_s: float) -> Iterator[tuple[float, float]]:
    return ((number * bin_s, value) for number, value in enumerate(values))


def _changes(columns: Sampled, series: str) -> Iterator[tuple[float, float]]:
    """The first value, those that differ from the one before, and the last."""
    values = columns[series]
    for number, (t_s, value) in enumerate(zip(columns["t_s"], values, strict=True)):
        changes = number in (0, len(values) - 1) or value != values[number - 1]
        if changes and t_s is not None and value is not None:
            yield t_s, value
