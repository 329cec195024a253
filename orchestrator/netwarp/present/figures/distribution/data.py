"""Data of a distribution (kinds cdf and box): every value of every group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from ....core.numbers import fixed, readable, scale
from ....core.outputs import Figure
from ....results.write import csv_bytes
from ....store.tables import number
from ...axes import Axis, NumberTable, Row, in_plan_order, level_axis, log_or_linear, place_axis
from ...entries import levels_of
from ...result_tables import conditions
from ...run_data import RunData
from ..line.data import line_key, line_label


@dataclass(frozen=True, slots=True)
class Group:
    """The values of one line at one place, ascending, each with its cell. of: number of cells that could have a value.

    quartiles: smallest, first quartile, median, third quartile, largest (linear interpolation between values).
    """

    key: str
    label: str
    place: int
    values: tuple[float, ...]
    cells: tuple[str, ...]
    of: int
    quartiles: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class DistributionData:
    """kind: cdf or box. x: the places of boxes (a CDF has one, without a name); value: what is distributed."""

    kind: str
    name: str
    title: str
    conditions: str
    x: Axis
    value: Axis
    groups: tuple[Group, ...]


def make_distribution(data: RunData, figure: Figure) -> DistributionData | None:
    """Its data from tables/<name>.csv, a row a cell; None where there is no value at all."""
    rows = data.tables.get(data.plan.rows_of(figure), ())
    metric = data.metrics.get(figure.metric)
    values_at: dict[tuple[tuple[str, ...], str], list[tuple[float, str]]] = {}
    count: dict[tuple[tuple[str, ...], str], int] = {}
    for row in rows:
        place = levels_of(row, figure.lines), row.get(figure.x, "") if figure.x else ""
        count[place] = count.get(place, 0) + 1
        values = values_at.setdefault(place, [])
        if (value := number(row.get("value"))) is not None:
            values.append((value, row["cell_id"]))
    all_values = [value for values in values_at.values() for value, _ in values]
    if not all_values:
        return None
    divisor, unit = scale(all_values, metric.unit if metric else "")
    places = in_plan_order(data, figure.x, (place for _, place in values_at))
    x = _places(data, figure.x, places)
    groups = []
    for (levels, level), values in values_at.items():
        values.sort()
        scaled = [value / divisor for value, _ in values]
        groups.append(
            Group(
                key=line_key(figure.lines, levels),
                label=line_label(data, figure.lines, levels),
                place=places.index(level),
                values=tuple(scaled),
                cells=tuple(cell for _, cell in values),
                of=count[levels, level],
                quartiles=quartiles(scaled),
            )
        )
    distributed = Axis(metric.title if metric else figure.metric, unit, log_or_linear(all_values), (), ())
    return DistributionData(
        figure.kind, figure.name, figure.title, conditions(data, figure.where), x, distributed, tuple(groups)
    )


def _places(data: RunData, factor: str, levels: list[str]) -> Axis:
    if not factor:
        return place_axis("", [""])
    axis = level_axis(data, factor, levels)
    return place_axis(axis.title, axis.text, axis.unit)


def quartiles(values: Sequence[float]) -> tuple[float, ...]:
    """Smallest, quartiles, largest; nothing of nothing."""
    return tuple(float(value) for value in np.percentile(values, [0, 25, 50, 75, 100])) if values else ()


def distribution_csv(figure: DistributionData) -> bytes:
    """One row per value, in the units drawn, with the share of its group's values at or below it."""
    return csv_bytes(
        ["line", *([figure.x.label] if figure.kind == "box" else []), figure.value.label, "share", "cell_id"],
        (
            (
                group.label,
                *([figure.x.text[group.place]] if figure.kind == "box" else []),
                value,
                (rank + 1) / len(group.values),
                cell,
            )
            for group in figure.groups
            for rank, (value, cell) in enumerate(zip(group.values, group.cells, strict=True))
        ),
    )


def distribution_json(figure: DistributionData) -> dict[str, object]:
    """The data from which the page's script (page.js) draws."""
    described = asdict(figure)
    for axis in ("x", "value"):
        described[axis]["label"] = getattr(figure, axis).label
    return described


def distribution_table(figure: DistributionData) -> NumberTable:
    """One row per group: its number of values, and their quartiles."""
    boxes = figure.kind == "box"
    unit = f" {figure.x.unit}" if figure.x.unit else ""
    return NumberTable(
        caption=f"{figure.title}: distribution of {figure.value.label}",
        row_titles=("line", figure.x.title) if boxes else ("line",),
        column_titles=("values", "smallest", "first quartile", "median", "third quartile", "largest"),
        rows=tuple(
            Row(
                (group.label, figure.x.text[group.place] + unit) if boxes else (group.label,),
                (how_many(group), *(readable(value) for value in group.quartiles or (None,) * 5)),
                group.key,
            )
            for group in figure.groups
        ),
    )


def how_many(group: Group) -> str:
    """ "20", or "18 of 20" where some cells had nothing to measure or did not complete."""
    own = fixed(len(group.values), 0)
    return own if len(group.values) == group.of else f"{own} of {fixed(group.of, 0)}"


def distribution_words(figure: DistributionData) -> str:
    """The distribution in words: each group's median and range."""
    sentences = [
        f"{group.label}{' at ' + figure.x.text[group.place] if figure.kind == 'box' else ''}: {how_many(group)}"
        f" {'value' if group.of == 1 else 'values'}, median {readable(group.quartiles[2])},"
        f" {readable(group.quartiles[0])} to {readable(group.quartiles[4])}"
        for group in figure.groups
        if group.values
    ]
    return f"Distribution of {figure.value.label}. {'. '.join(sentences)}. All numbers are in the table below."
