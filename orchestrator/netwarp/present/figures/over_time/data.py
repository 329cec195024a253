"""Data of a figure over time: a curve for each cell, path and series, and the times of the faults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from ....core.numbers import fixed, given, readable, scale
from ....core.outputs import SAMPLED, TimeSeries
from ....results.time_tables import series_unit
from ....results.write import csv_bytes
from ....store.tables import number
from ...axes import Axis, NumberTable, Row
from ...metric_names import unit_beside
from ...result_tables import conditions
from ...run_data import CellResult, RunData
from ...series import MOST_POINTS, keep_extremes

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


@dataclass(frozen=True, slots=True)
class Curve:
    """One series of one path of one cell; x in seconds from T0, y already divided to the axis' unit. step: each value
    holds until the next.
    """

    key: str
    label: str
    cell: str
    step: bool
    x: tuple[float, ...]
    y: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class TimeFigure:
    """A figure over time, ready to be drawn. faults: (from, to) in seconds, of the first cell shown."""

    kind: str
    name: str
    title: str
    conditions: str
    x: Axis
    y: Axis
    lines: tuple[Curve, ...]
    faults: tuple[tuple[float, float], ...]


def series_titles() -> dict[str, dict[str, str]]:
    """Series -> its title, and the unit that stands beside it, as the page's scripts read them."""
    return {
        name: {"title": title, "unit": unit_beside(title, series_unit(name))} for name, title in SERIES_TITLES.items()
    }


def varying(data: RunData, where: Mapping[str, Sequence[str]]) -> list[str]:
    """The factors in which the shown cells differ."""
    results = _shown(data, where)
    return [
        factor.name
        for factor in data.plan.factors
        if len({result.cell.factors.get(factor.name, "-") for result in results}) > 1
    ]


def _shown(data: RunData, where: Mapping[str, Sequence[str]]) -> list[CellResult]:
    chosen = {name: tuple(levels) for name, levels in where.items()}
    return [result for result in data.cells if not result.cell.repetition and data.selection.has(result.cell, chosen)]


def curve_key(figure: TimeSeries, row: Mapping[str, str], factors: Sequence[str]) -> str:
    """The key of the curve of a row, for its look: a figure's own, since `factors` are those that vary in it."""
    levels = [f"{name}={row[name]}" for name in factors if row[name] != "-"]
    levels += [f"flow {row['flow']}"] if "flow" in row else []
    return "|".join([figure.name, *levels, f"path {row['path']}", row["series"]])


def make_time_figure(data: RunData, figure: TimeSeries) -> TimeFigure | None:
    """Its data from tables/<name>.csv; None where there are none."""
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
    return TimeFigure(
        "time",
        figure.name,
        figure.title,
        conditions(data, figure.where),
        Axis("time from T0", "s", "linear", (), ()),
        Axis(title, unit, "linear", (), ()),
        lines,
        faults,
    )


def _curve(
    data: RunData,
    figure: TimeSeries,
    cell: str,
    key: str,
    rows: Sequence[Mapping[str, str]],
    factors: Sequence[str],
    divisor: float,
) -> Curve:
    row = rows[0]
    words = [data.level_title(name, row[name]) for name in factors if row[name] != "-"]
    words += [row["flow"]] if len(figure.flows) > 1 else []
    words += [f"path {row['path']}"] if row["path"] else []
    words += [SERIES_TITLES.get(row["series"], row["series"])] if len(figure.series) > 1 else []
    x = np.array([float(row["t_s"]) for row in rows])
    y = np.array([float(row["value"]) for row in rows]) / divisor
    keep = keep_extremes(y, MOST_POINTS)
    step = row["series"] in SAMPLED
    return Curve(key, ", ".join(words) or "all", cell, step, tuple(x[keep].tolist()), tuple(y[keep].tolist()))


def time_words(figure: TimeFigure) -> str:
    """The figure for those who cannot see it."""
    curves = [
        f"{line.label}: from {readable(line.y[0])} to {readable(line.y[-1])}, at most {readable(max(line.y))}"
        for line in figure.lines
    ]
    down = [f"down from {given(begin)} to {given(end)} s" for begin, end in figure.faults]
    return f"{figure.y.label} over time; {'; '.join([*curves, *down])}"


def time_json(figure: TimeFigure) -> dict[str, object]:
    """The data from which the page's script (page.js) draws."""
    described = asdict(figure)
    described["x"]["label"], described["y"]["label"] = figure.x.label, figure.y.label
    return described


def time_table(figure: TimeFigure) -> NumberTable:
    """Not every sample: of each curve its first, smallest, largest and last value."""
    rows = tuple(
        Row(
            (line.label,),
            tuple(fixed(value, 1) for value in (line.y[0], min(line.y), max(line.y), line.y[-1])),
            line.key,
        )
        for line in figure.lines
    )
    return NumberTable(
        figure.title, ("line",), tuple(f"{w} ({figure.y.unit})" for w in ("first", "least", "most", "last")), rows
    )


def time_csv(figure: TimeFigure) -> bytes:
    """The points as drawn (tables/<name>.csv has all of them, in base units)."""
    rows = ((line.label, line.cell, x, y) for line in figure.lines for x, y in zip(line.x, line.y, strict=True))
    return csv_bytes(("line", "cell", figure.x.label, figure.y.label), rows)
