"""Figures of kind heatmap: panels of the same two axes, a mean and its cells in each field."""

from __future__ import annotations

from collections.abc import Mapping

from ...core import outputs
from ...core.numbers import DASH, given, in_shown_unit, readable, scale
from ...results.write import csv_bytes
from ..result_tables import Entry, conditions, read_entries
from ..run_data import RunData
from ..style import OUTCOMES
from .description import (
    Axis,
    Drawing,
    HeatMap,
    NumberTable,
    Panel,
    Row,
    Spot,
    decades,
    in_plan_order,
    level_places,
    log_or_linear,
)  # fmt: skip
from .line import line_label

COMPLETED = next(iter(OUTCOMES))
NOTHING = "nothing to measure"


def heatmap_figure(data: RunData, figure: outputs.Figure) -> Drawing | None:
    """The figure; None where the run has no numbers for it."""
    numbers = read_entries(data, figure)
    values = [entry.value for entry in numbers.entries if entry.value is not None]
    if not values:
        return None
    metric = data.metrics.get(figure.metric)
    divisor, unit = scale(values, metric.unit if metric else "")
    by_place = {entry.levels: entry for entry in numbers.entries}
    outcomes = {result.id: result.outcome for result in data.cells}
    rows, columns = (
        in_plan_order(data, factor, (entry.levels[axis] for entry in numbers.entries))
        for axis, factor in ((-2, figure.y), (-1, figure.x))
    )
    panels = tuple(
        Panel(
            line_label(data, figure.panels, panel) if figure.panels else "",
            tuple(
                tuple(_spot(by_place.get((*panel, row, column)), divisor, outcomes) for column in columns)
                for row in rows
            ),
        )
        for panel in dict.fromkeys(entry.levels[:-2] for entry in numbers.entries)
    )
    log = log_or_linear(values) == "log"
    marks = decades(min(values) / divisor, max(values) / divisor) if log else ()
    heatmap = HeatMap(
        level_places(data, figure.x, columns),
        level_places(data, figure.y, rows),
        Axis(
            metric.title if metric else figure.metric, unit, "log" if log else "linear", marks,
            tuple(given(mark) for mark in marks), (min(values) / divisor, max(values) / divisor),
        ),
        panels,
    )  # fmt: skip
    title = in_shown_unit(figure.title, metric.unit if metric else "", unit)
    return Drawing(
        figure.name, title, conditions(data, figure.where, figure.axes), _words(heatmap), heatmap,
        _table(title, heatmap), _csv(heatmap),
    )  # fmt: skip


def _spot(entry: Entry | None, divisor: float, outcomes: Mapping[str, str]) -> Spot | None:
    if entry is None:
        return None
    if entry.value is not None:
        value = entry.value / divisor
        return Spot(value, readable(value, 3), entry.note, entry.n, entry.cells)
    why = ", ".join(sorted({outcomes[cell] for cell in entry.cells} - {COMPLETED}))
    return Spot(None, why or DASH, why or NOTHING, 0, entry.cells)


def _csv(heatmap: HeatMap) -> bytes:
    """One row per place, in the units drawn."""
    return csv_bytes(
        ["panel", heatmap.y.label, heatmap.x.label, heatmap.value.label, "n", "note"],
        (
            (panel.label, y, x, spot.value, spot.n, spot.why)
            for panel in heatmap.panels
            for y, row in zip(heatmap.y.text, panel.spots, strict=True)
            for x, spot in zip(heatmap.x.text, row, strict=True)
            if spot is not None
        ),
    )


def _table(title: str, heatmap: HeatMap) -> NumberTable:
    """The map as it lies: rows of y, columns of x, panels below one another."""
    several = len(heatmap.panels) > 1
    unit = f" {heatmap.x.unit}" if heatmap.x.unit else ""
    return NumberTable(
        caption=f"{title}: {heatmap.value.label} over {heatmap.x.label} and {heatmap.y.label}",
        row_titles=(*(("panel",) if several else ()), heatmap.y.label),
        column_titles=tuple(text + unit for text in heatmap.x.text),
        rows=tuple(
            Row((*((panel.label,) if several else ()), y), tuple(spot.text if spot else "" for spot in row))
            for panel in heatmap.panels
            for y, row in zip(heatmap.y.text, panel.spots, strict=True)
        ),
    )


def _words(heatmap: HeatMap) -> str:
    """What the map shows, and where its smallest and largest numbers are."""
    known = [
        (spot.value, f"{heatmap.x.title} {x} {heatmap.x.unit}, {heatmap.y.title} {y} {heatmap.y.unit} {panel.label}")
        for panel in heatmap.panels
        for y, row in zip(heatmap.y.text, panel.spots, strict=True)
        for x, spot in zip(heatmap.x.text, row, strict=True)
        if spot is not None and spot.value is not None
    ]
    low, high = min(known), max(known)
    ends = f"Smallest {readable(low[0], 3)} at {low[1].strip()}; largest {readable(high[0], 3)} at {high[1].strip()}."
    return f"{heatmap.value.label} over {heatmap.x.label} and {heatmap.y.label}. {ends} The numbers are in the table."
