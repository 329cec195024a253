"""Data of a heat map: panels of the same two axes, a mean and its cells in each field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from ....core.numbers import DASH, readable, scale
from ....core.outputs import Figure
from ....results.write import csv_bytes
from ...axes import Axis, NumberTable, Row, in_plan_order, level_axis, log_or_linear, place_axis
from ...entries import Entry, read_entries
from ...result_tables import conditions
from ...run_data import RunData
from ..line.data import line_label

COMPLETED = "COMPLETED"
NOTHING = "nothing to measure"


@dataclass(frozen=True, slots=True)
class Spot:
    """One place. value: the mean, in the unit shown; None if there is none, and `why` says why. cells: those it is the
    mean of.
    """

    value: float | None
    why: str
    n: int
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Panel:
    """spots: by row (y) and column (x); None where the experiment has no such cell."""

    label: str
    spots: tuple[tuple[Spot | None, ...], ...]


@dataclass(frozen=True, slots=True)
class HeatmapData:
    """A heat map ready to be drawn. x, y: axes of places; value: what the colour means, kind log or linear."""

    name: str
    title: str
    conditions: str
    x: Axis
    y: Axis
    value: Axis
    panels: tuple[Panel, ...]


def make_heatmap(data: RunData, figure: Figure) -> HeatmapData | None:
    """The heat map's data; None where the run has no numbers for it."""
    numbers = read_entries(data, figure)
    if not any(entry.value is not None for entry in numbers.entries):
        return None
    metric = data.metrics.get(figure.metric)
    values = [entry.value for entry in numbers.entries if entry.value is not None]
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
    return HeatmapData(
        name=figure.name,
        title=figure.title,
        conditions=conditions(data, figure.where, figure.axes),
        x=_places(data, figure.x, columns),
        y=_places(data, figure.y, rows),
        value=Axis(metric.title if metric else figure.metric, unit, log_or_linear(values), (), ()),
        panels=panels,
    )


def _places(data: RunData, factor: str, levels: list[str]) -> Axis:
    """Levels side by side whatever they are: a map has fields of one size."""
    axis = level_axis(data, factor, levels)
    return place_axis(axis.title, axis.text, axis.unit)


def _spot(entry: Entry | None, divisor: float, outcomes: Mapping[str, str]) -> Spot | None:
    if entry is None:
        return None
    if entry.value is not None:
        return Spot(entry.value / divisor, entry.note, entry.n, entry.cells)
    bad = sorted({outcomes[cell] for cell in entry.cells} - {COMPLETED})
    return Spot(None, ", ".join(bad) or NOTHING, 0, entry.cells)


def heatmap_csv(heatmap: HeatmapData) -> bytes:
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


def heatmap_json(heatmap: HeatmapData) -> dict[str, object]:
    """The data from which the page's script (page.js) draws."""
    described = asdict(heatmap)
    for axis in ("x", "y", "value"):
        described[axis]["label"] = getattr(heatmap, axis).label
    return {"kind": "heatmap", **described}


def heatmap_table(heatmap: HeatmapData) -> NumberTable:
    """The map as it lies: rows of y, columns of x, panels below one another."""
    several = len(heatmap.panels) > 1
    unit = f" {heatmap.x.unit}" if heatmap.x.unit else ""
    return NumberTable(
        caption=f"{heatmap.title}: {heatmap.value.label} over {heatmap.x.label} and {heatmap.y.label}",
        row_titles=(*(("panel",) if several else ()), heatmap.y.label),
        column_titles=tuple(text + unit for text in heatmap.x.text),
        rows=tuple(
            Row((*((panel.label,) if several else ()), y), tuple(spot_text(spot) for spot in row))
            for panel in heatmap.panels
            for y, row in zip(heatmap.y.text, panel.spots, strict=True)
        ),
    )


def spot_text(spot: Spot | None) -> str:
    """A place as text: its number, or the reason why it has none."""
    if spot is None:
        return ""
    return readable(spot.value, 3) if spot.value is not None else DASH if spot.why == NOTHING else spot.why


def heatmap_words(heatmap: HeatmapData) -> str:
    """The map in words: what it shows and where its smallest and largest numbers are."""
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
