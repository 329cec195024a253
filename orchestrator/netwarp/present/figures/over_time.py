"""Figures over time (a curve for each cell, path and series, and the times of the faults) and tables of events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...core.numbers import fixed, given, readable, scale
from ...core.outputs import SAMPLED, EventTable, TimeSeries
from ...results.rows import series_unit
from ...results.write import csv_bytes
from ...store.tables import number
from ..result_tables import conditions
from ..run_data import CellResult, RunData, unit_beside
from ..series import MOST_POINTS, keep_extremes
from .description import Axis, Chart, Drawing, NumberTable, Row, Series, marked, value_axis

SERIES_TITLES = {
    "cwnd_bytes": "congestion window (from the kernel)",
    "srtt_s": "smoothed RTT (from the kernel)",
    "ssthresh_bytes": "slow-start threshold (from the kernel)",
    "goodput_bit_s": "goodput",
    "throughput_bit_s": "throughput",
    "packets_s": "packets per second",
    "data_packets_s": "packets with data per second",
    "control_packets_s": "packets without data per second",
}
FAULTS = ("cut", "blackhole", "link")
SHOWN_ROWS = 2000
"""Of a table of events."""
Rows = Sequence[Mapping[str, str]]


def series_titles() -> dict[str, dict[str, str]]:
    """Series -> its title, and the unit that stands beside it, as the page's scripts read them."""
    return {
        name: {"title": title, "unit": unit_beside(title, series_unit(name))} for name, title in SERIES_TITLES.items()
    }


def varying(data: RunData, where: Mapping[str, Sequence[str]]) -> list[str]:
    """The factors in which the shown cells differ."""
    chosen = {name: tuple(levels) for name, levels in where.items()}

    def shown(result: CellResult) -> bool:
        return not result.cell.repetition and data.selection.has(result.cell, chosen)

    results = [result for result in data.cells if shown(result)]
    return [
        factor.name
        for factor in data.plan.factors
        if len({result.cell.factors.get(factor.name, "-") for result in results}) > 1
    ]


def curve_key(figure: TimeSeries, row: Mapping[str, str], factors: Sequence[str]) -> str:
    """The key of the curve of a row, for its look: a figure's own, since `factors` are those that vary in it."""
    levels = [f"{name}={row[name]}" for name in factors if row[name] != "-"]
    levels += [f"flow {row['flow']}"] if "flow" in row else []
    return "|".join([figure.name, *levels, f"path {row['path']}", row["series"]])


def time_figure(data: RunData, figure: TimeSeries) -> Drawing | None:
    """The figure from tables/<name>.csv; None where there are no rows. The faults are those of the first cell shown."""
    factors = varying(data, figure.where)
    curves: dict[tuple[str, str], list[Mapping[str, str]]] = {}
    for row in data.tables.get(data.plan.rows_of(figure), ()):
        curves.setdefault((row["cell_id"], curve_key(figure, row, factors)), []).append(row)
    if not curves:
        return None
    values = [number(row["value"]) for rows in curves.values() for row in rows]
    divisor, unit = scale(values, next(iter(curves.values()))[0]["unit"])
    # of several the legend has the names
    title = SERIES_TITLES.get(figure.series[0], figure.series[0]) if len(figure.series) == 1 else unit
    lines = tuple(_curve(data, figure, cell, key, rows, factors, divisor) for (cell, key), rows in curves.items())
    first = next(iter(curves))[0]
    timeline = next((result.cell.timeline for result in data.cells if result.id == first), ())
    begins = [event.at_ns / 1e9 for event in timeline if event.action in FAULTS]
    ends = [event.at_ns / 1e9 for event in timeline if event.action == "repair"]
    faults = tuple(zip(begins, ends, strict=False))
    y = value_axis(title, unit, [value for line in lines for value in line.y], "linear")
    chart = Chart(Axis("time from T0", "s"), y, lines, bands=faults)
    return Drawing(
        figure.name, figure.title, conditions(data, figure.where), _words(chart), chart, _table(figure.title, chart),
        _csv(chart),
    )  # fmt: skip


def _curve(
    data: RunData, figure: TimeSeries, cell: str, key: str, rows: Rows, factors: Sequence[str], divisor: float
) -> Series:
    row = rows[0]
    words = [data.plan.level_title(name, row[name]) for name in factors if row[name] != "-"]
    words += [row["flow"]] if len(figure.flows) > 1 else []
    words += [f"path {row['path']}"] if row["path"] else []
    words += [SERIES_TITLES.get(row["series"], row["series"])] if len(figure.series) > 1 else []
    x = np.array([float(row["t_s"]) for row in rows])
    y = np.array([float(row["value"]) for row in rows]) / divisor
    keep = keep_extremes(y, MOST_POINTS)
    return Series(
        key, ", ".join(words) or "all", tuple(x[keep].tolist()), tuple(y[keep].tolist()), ((cell,),),
        "steps" if row["series"] in SAMPLED else "lines", every=marked(len(keep)),
    )  # fmt: skip


def _words(chart: Chart) -> str:
    curves = [
        f"{line.label}: from {readable(line.y[0])} to {readable(line.y[-1])}, at most {readable(max(line.y))}"
        for line in chart.series
    ]
    down = [f"down from {given(begin)} to {given(end)} s" for begin, end in chart.bands]
    return f"{chart.y.label} over time; {'; '.join([*curves, *down])}"


def _table(title: str, chart: Chart) -> NumberTable:
    """Not every sample: of each curve its first, smallest, largest and last value."""
    rows = tuple(
        Row(
            (line.label,),
            tuple(fixed(value, 1) for value in (line.y[0], min(line.y), max(line.y), line.y[-1])),
            line.key,
        )
        for line in chart.series
    )
    return NumberTable(
        title, ("line",), tuple(f"{w} ({chart.y.unit})" for w in ("first", "least", "most", "last")), rows
    )


def _csv(chart: Chart) -> bytes:
    """The points as drawn (tables/<name>.csv has all of them, in base units)."""
    rows = ((line.label, line.cells[0][0], x, y) for line in chart.series for x, y in zip(line.x, line.y, strict=True))
    return csv_bytes(("line", "cell", chart.x.label, chart.y.label), rows)


def make_events(data: RunData, table: EventTable) -> dict[str, Any] | None:
    """The rows of tables/<name>.csv as events.html.j2 takes them; None where there are none. groups: of each cell the
    levels in words, its id and its table, whose times are as the capture has them.
    """
    factors = varying(data, table.where)
    cells: dict[str, list[Mapping[str, str]]] = {}
    for row in data.tables.get(table.name, ())[:SHOWN_ROWS]:
        cells.setdefault(row["cell_id"], []).append(row)
    heads = ("time (s)", "event", "at", "path", "what", "note")
    groups = [
        (
            ", ".join(data.plan.level_title(name, rows[0][name]) for name in factors if rows[0][name] != "-"),
            cell,
            NumberTable(table.title, heads, ("number", "bytes"), tuple(map(_event, rows))),
        )
        for cell, rows in cells.items()
    ]
    shown = {"name": table.name, "title": table.title, "conditions": conditions(data, table.where), "groups": groups}
    return shown if groups else None


def _event(row: Mapping[str, str]) -> Row:
    at = f"{row['node']}, {row['link']}" if row["node"] else row["link"]
    heads = (fixed(float(row["t_s"]), 6), row["event"], at, row["path"], row["type"], row["note"])
    return Row(heads, (row["number"], row["bytes"]))
