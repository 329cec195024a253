"""Figures of the kinds cdf and box: every value of every variant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...core import outputs
from ...core.numbers import fixed, in_shown_unit, readable, scale
from ...results.write import csv_bytes
from ...store.tables import number
from ..result_tables import conditions, levels_of
from ..run_data import RunData
from .description import (
    Axis,
    Box,
    Chart,
    Drawing,
    NumberTable,
    Row,
    Series,
    in_plan_order,
    level_places,
    log_or_linear,
    marked,
    value_axis,
)  # fmt: skip
from .line import line_key, line_label

SHARE = Axis("share of values at or below", "%", span=(0.0, 102.0))


@dataclass(frozen=True, slots=True)
class Group:
    """The values of one line at one place, ascending, each with its cell. of: number of cells that could have a value.

    quartiles: smallest, first quartile, median, third quartile, largest; nothing of nothing.
    """

    key: str
    label: str
    place: int
    values: tuple[float, ...]
    cells: tuple[str, ...]
    of: int
    quartiles: tuple[float, ...]

    @property
    def count(self) -> str:
        """ "20", or "18 of 20" where some cells had nothing to measure or did not complete."""
        own = fixed(len(self.values), 0)
        return own if len(self.values) == self.of else f"{own} of {fixed(self.of, 0)}"


def distribution_figure(data: RunData, figure: outputs.Figure) -> Drawing | None:
    """The figure from tables/<name>.csv, a row a cell; None where there is no value at all."""
    at_place: dict[tuple[tuple[str, ...], str], list[tuple[float | None, str]]] = {}
    for row in data.tables.get(data.plan.rows_of(figure), ()):
        place = levels_of(row, figure.lines), row.get(figure.x, "") if figure.x else ""
        at_place.setdefault(place, []).append((number(row.get("value")), row["cell_id"]))
    measured = [value for rows in at_place.values() for value, _ in rows if value is not None]
    if not measured:
        return None
    metric = data.metrics.get(figure.metric)
    divisor, unit = scale(measured, metric.unit if metric else "")
    levels = in_plan_order(data, figure.x, (place for _, place in at_place))
    groups = []
    for (variant, level), rows in at_place.items():
        known = sorted((value / divisor, cell) for value, cell in rows if value is not None)
        values = tuple(value for value, _ in known)
        groups.append(
            Group(
                key=line_key(figure.lines, variant),
                label=line_label(data, figure.lines, variant),
                place=levels.index(level),
                values=values,
                cells=tuple(cell for _, cell in known),
                of=len(rows),
                quartiles=tuple(np.percentile(values, [0, 25, 50, 75, 100]).tolist()) if values else (),
            )
        )
    value = value_axis(
        metric.title if metric else figure.metric, unit, [value / divisor for value in measured],
        log_or_linear(measured),
    )  # fmt: skip
    places = level_places(data, figure.x, levels, 0.6) if figure.kind == "box" else None
    chart = (
        _boxes(groups, places, value)
        if places
        else Chart(replace(value, from_zero=False), SHARE, tuple(map(_steps, groups)))
    )
    title = in_shown_unit(figure.title, metric.unit if metric else "", unit)
    return Drawing(
        figure.name, title, conditions(data, figure.where), _words(groups, places, value), chart,
        _table(title, groups, places, value), _csv(groups, places, value),
    )  # fmt: skip


def _steps(group: Group) -> Series:
    """The share of the values at or below each, from 0 at the smallest."""
    n = len(group.values)
    shares = tuple(100 * rank / n for rank in range(n + 1)) if n else ()
    return Series(
        group.key, group.label, (*group.values[:1], *group.values), shares,
        tuple((cell,) for cell in (*group.cells[:1], *group.cells)), "steps", every=marked(n), note=_note(group),
    )  # fmt: skip


def _boxes(groups: Sequence[Group], places: Axis, value: Axis) -> Chart:
    """Boxes of one place side by side, with every point in its own."""
    keys = list(dict.fromkeys(group.key for group in groups))
    width = 0.8 / len(keys)
    boxes, points = [], []
    for group in groups:
        at = group.place + (keys.index(group.key) - (len(keys) - 1) / 2) * width
        if group.values:
            boxes.append(Box(group.key, group.label, at, width * 0.8, group.quartiles))
        # points side by side rather than one on the other
        x = tuple(at + (rank * 7 % 11 - 5) / 11 * width * 0.5 for rank in range(len(group.values)))
        cells = tuple((cell,) for cell in group.cells)
        points.append(Series(group.key, group.label, x, group.values, cells, "points", note=_note(group)))
    return Chart(places, value, tuple(points), tuple(boxes))


def _note(group: Group) -> str:
    return f"n = {group.count}" if len(group.values) == group.of else f"{group.count} had a value"


def _csv(groups: Sequence[Group], places: Axis | None, value: Axis) -> bytes:
    """One row per value, in the units drawn, with the share of its group's values at or below it."""
    return csv_bytes(
        ["line", *([places.label] if places else []), value.label, "share", "cell_id"],
        (
            (group.label, *([places.text[group.place]] if places else []), one, (rank + 1) / len(group.values), cell)
            for group in groups
            for rank, (one, cell) in enumerate(zip(group.values, group.cells, strict=True))
        ),
    )


def _table(title: str, groups: Sequence[Group], places: Axis | None, value: Axis) -> NumberTable:
    """One row per group: its number of values, and their quartiles."""
    unit = f" {places.unit}" if places and places.unit else ""
    return NumberTable(
        caption=f"{title}: distribution of {value.label}",
        row_titles=("line", places.title) if places else ("line",),
        column_titles=("values", "smallest", "first quartile", "median", "third quartile", "largest"),
        rows=tuple(
            Row(
                (group.label, places.text[group.place] + unit) if places else (group.label,),
                (group.count, *(readable(value) for value in group.quartiles or (None,) * 5)),
                group.key,
            )
            for group in groups
        ),
    )


def _words(groups: Sequence[Group], places: Axis | None, value: Axis) -> str:
    """Each group's median and range."""
    sentences = [
        f"{group.label}{' at ' + places.text[group.place] if places else ''}: {group.count}"
        f" {'value' if group.of == 1 else 'values'}, median {readable(group.quartiles[2])},"
        f" {readable(group.quartiles[0])} to {readable(group.quartiles[4])}"
        for group in groups
        if group.values
    ]
    return f"Distribution of {value.label}. {'. '.join(sentences)}. All numbers are in the table below."
