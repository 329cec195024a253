"""Figures over time (a curve for each cell, path and series, and the times of the faults) and tables of events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...core.numbers import fixed, given, in_shown_unit, readable, scale
from ...core.outputs import FLOW, SAMPLED, SERIES, EventTable, TimeSeries
from ...core.types import FAULTS
from ...plan.types import in_level_order
from ...results.write import csv_bytes
from ...store.tables import number
from ..result_tables import conditions
from ..run_data import CellResult, RunData, unit_beside
from ..series import MOST_POINTS, keep_extremes
from .description import Axis, Chart, Drawing, Grid, GridPanel, NumberTable, Row, Series, marked, value_axis
from .line import line_label

SERIES_TITLES = {
    "cwnd_bytes": "congestion window (from the kernel)",
    "srtt_s": "smoothed RTT (from the kernel)",
    "ssthresh_bytes": "slow-start threshold (from the kernel)",
    "bbr_bw_bit_s": "BBR's bandwidth (from the kernel)",
    "bbr_min_rtt_s": "BBR's minimum RTT (from the kernel)",
    "bbr_pacing_gain": "BBR's pacing gain (from the kernel)",
    "bbr_cwnd_gain": "BBR's cwnd gain (from the kernel)",
    "goodput_bit_s": "goodput",
    "throughput_bit_s": "throughput",
    "packets_s": "packets per second",
    "data_packets_s": "packets with data per second",
    "control_packets_s": "packets without data per second",
    "share_ratio": "share of the goodput",
    "retransmitted_packets": "retransmitted packets",
    "lost_packets": "lost packets",
    "loss_ratio": "share of packets lost",
    "queue_delay_mean_s": "mean queue delay",
    "queue_delay_p95_s": "queue delay, 95 % of the packets",
    "utilization_ratio": "utilization",
    "jain_index": "Jain's fairness index",
    "running_flows": "flows that run",
}
FEW = 4
"""Curves that look alike, of which each can still be followed."""
MOST_SAID = 12
"""Curves that are said in words."""
SHOWN_ROWS = 2000
"""Of a table of events."""
Rows = Sequence[Mapping[str, str]]


def series_titles() -> dict[str, dict[str, str]]:
    """Series -> its title, and the unit that stands beside it, as the page's scripts read them."""
    return {name: {"title": title, "unit": unit_beside(title, SERIES[name])} for name, title in SERIES_TITLES.items()}


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


def flow_shown(data: RunData, figure: TimeSeries, row: Mapping[str, str]) -> str:
    """The flow of a row, or its group where the figure names that: its flows are drawn alike. "": the figure is of one
    flow.
    """
    flow = row.get("flow", "")
    group = data.plan.groups.get(flow, "")
    return group if group in figure.flows and flow not in figure.flows else flow


def curve_factors(data: RunData, figure: TimeSeries, rows: Rows) -> list[str]:
    """The factors by which the figure's curves are told apart: those that vary. Panels tell theirs; but where each
    panel has one kind of curve, that has the look that other figures give to the panel's levels.
    """
    factors = varying(data, figure.where)
    beside = [factor for factor in factors if factor not in figure.panels]
    kinds = {(*(row[factor] for factor in beside), _named_flow(data, figure, row), row["series"]) for row in rows}
    elsewhere = {factor for other in data.plan.figures for factor in other.lines}
    for other in data.plan.time_series:
        elsewhere |= set(varying(data, other.where)) - {*other.panels}
    return [factor for factor in factors if factor in elsewhere] if figure.panels and len(kinds) == 1 else beside


def _named_flow(data: RunData, figure: TimeSeries, row: Mapping[str, str]) -> str:
    return "" if FLOW in figure.panels else flow_shown(data, figure, row)


def curve_key(data: RunData, figure: TimeSeries, row: Mapping[str, str], factors: Sequence[str]) -> str:
    """The key of the curve of a row, for its look: a figure's own, since `factors` are those that vary in it."""
    levels = [f"{name}={row[name]}" for name in factors if row[name] != "-"]
    flow = flow_shown(data, figure, row)
    levels += [f"flow {flow}"] if "flow" in row else []
    path = "" if flow != row.get("flow", "") else row["path"]
    return "|".join([figure.name, *levels, f"path {path}", row["series"]])


def time_figure(data: RunData, figure: TimeSeries) -> Drawing | None:
    """The figure from tables/<name>.csv; None where there are no rows. The faults are those of the first cell shown."""
    every = data.tables.get(data.plan.rows_of(figure), ())
    factors = curve_factors(data, figure, every)
    curves: dict[tuple[str, str, str, str], list[Mapping[str, str]]] = {}
    for row in every:
        curve = row["cell_id"], curve_key(data, figure, row, factors), row.get("flow", ""), row["path"]
        curves.setdefault(curve, []).append(row)
    if not curves:
        return None
    values = [number(row["value"]) for rows in curves.values() for row in rows]
    divisor, unit = scale(values, next(iter(curves.values()))[0]["unit"])
    # of several the legend has the names
    title = SERIES_TITLES.get(figure.series[0], figure.series[0]) if len(figure.series) == 1 else unit
    many = Counter((cell, key) for cell, key, _, _ in curves)
    panels: dict[tuple[str, ...], list[Series]] = {}
    first: dict[tuple[str, ...], str] = {}
    for (cell, key, _, _), rows in curves.items():
        place = tuple(
            rows[0].get(axis, "-") if axis != FLOW else flow_shown(data, figure, rows[0]) for axis in figure.panels
        )
        line = _curve(data, figure, cell, key, rows, factors, divisor, thin=many[cell, key] > FEW)
        panels.setdefault(place, []).append(line)
        first.setdefault(place, cell)
    drawn = [value for lines in panels.values() for line in lines for value in line.y]
    above = [value for value in drawn if value > 0]
    y = value_axis(title, unit, above if figure.log and above else drawn, "log" if figure.log and above else "linear")
    x = Axis("time from T0", "s")
    if not figure.panels:
        (lines,) = panels.values()
        marks: Chart | Grid = Chart(x, y, tuple(lines), bands=_faults(data, next(iter(first.values()))))
    else:
        marks = Grid(
            x,
            y,
            tuple(
                GridPanel(line_label(data, figure.panels, place), tuple(panels[place]), _faults(data, first[place]))
                for place in in_level_order(data.plan, figure.panels, panels)
            ),
            legend=any(len({line.key for line in lines}) > 1 for lines in panels.values()),
        )
    named = [(f"{panel.label}: " if figure.panels else "", line) for panel in _panels(marks) for line in panel.series]
    title = in_shown_unit(figure.title, next(iter(curves.values()))[0]["unit"], unit)
    return Drawing(
        figure.name, title, conditions(data, figure.where), _words(marks, named), marks,
        _table(title, y, named), _csv(marks, named),
    )  # fmt: skip


def _panels(marks: Chart | Grid) -> Sequence[GridPanel]:
    return marks.panels if isinstance(marks, Grid) else (GridPanel("", marks.series, marks.bands),)


def _faults(data: RunData, cell: str) -> tuple[tuple[float, float], ...]:
    timeline = next((result.cell.timeline for result in data.cells if result.id == cell), ())
    begins = [event.at_ns / 1e9 for event in timeline if event.action in FAULTS]
    ends = [event.at_ns / 1e9 for event in timeline if event.action == "repair"]
    return tuple(zip(begins, ends, strict=False))


def _curve(
    data: RunData,
    figure: TimeSeries,
    cell: str,
    key: str,
    rows: Rows,
    factors: Sequence[str],
    divisor: float,
    *,
    thin: bool,
) -> Series:
    row = rows[0]
    flow = flow_shown(data, figure, row)
    grouped = flow != row.get("flow", "")
    words = [data.plan.level_title(name, row[name]) for name in factors if row[name] != "-"]
    words += [f"flows {flow}*" if grouped else flow] if len(figure.flows) > 1 or grouped else []
    words += [f"path {row['path']}"] if row["path"] and not grouped else []
    words += [SERIES_TITLES.get(row["series"], row["series"])] if len(figure.series) > 1 else []
    x = np.array([float(row["t_s"]) for row in rows])
    y = np.array([float(row["value"]) for row in rows]) / divisor
    keep = keep_extremes(y, MOST_POINTS)
    return Series(
        key, ", ".join(words) or "all", tuple(x[keep].tolist()), tuple(y[keep].tolist()), ((cell,),),
        "steps" if row["series"] in SAMPLED else "lines", every=marked(len(keep)), thin=thin,
    )  # fmt: skip


Named = Sequence[tuple[str, Series]]
"""Lines, each with the beginning of its name that its panel gives it."""


def _words(marks: Chart | Grid, named: Named) -> str:
    curves = [
        f"{panel}{line.label}: from {readable(line.y[0])} to {readable(line.y[-1])}, at most {readable(max(line.y))}"
        for panel, line in named[:MOST_SAID]
    ]
    curves += [f"and {len(named) - MOST_SAID} more"] if len(named) > MOST_SAID else []
    bands = dict.fromkeys(band for panel in _panels(marks) for band in panel.bands)
    down = [f"down from {given(begin)} to {given(end)} s" for begin, end in bands]
    return f"{marks.y.label} over time; {'; '.join([*curves, *down])}"


def _table(title: str, y: Axis, named: Named) -> NumberTable:
    """Not every sample: of each curve its first, smallest, largest and last value."""
    rows = tuple(
        Row(
            (panel + line.label,),
            tuple(fixed(value, 1) for value in (line.y[0], min(line.y), max(line.y), line.y[-1])),
            line.key,
        )
        for panel, line in named
    )
    heads = tuple(f"{word} ({y.unit})" if y.unit else word for word in ("first", "least", "most", "last"))
    return NumberTable(title, ("line",), heads, rows)


def _csv(marks: Chart | Grid, named: Named) -> bytes:
    """The points as drawn (tables/<name>.csv has all of them, in base units)."""
    rows = (
        (panel + line.label, line.cells[0][0], x, y)
        for panel, line in named
        for x, y in zip(line.x, line.y, strict=True)
    )
    return csv_bytes(("line", "cell", marks.x.label, marks.y.label), rows)


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
