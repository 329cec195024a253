"""Axes of figures, and a figure's numbers as a text table, also for screen readers."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..core.numbers import given
from ..core.units import QuantityError, parse_quantity
from ..plan.types import in_level_order
from .metric_names import unit_beside
from .run_data import RunData

LOG_FROM = 30.0
"""A numeric axis (or colour) whose largest value is this many times its smallest is logarithmic."""
TOO_CLOSE = 0.01
"""Levels closer to each other than this fraction of the axis share one label."""


@dataclass(frozen=True, slots=True)
class Axis:
    """kind: linear, log or category (static/charts.js and page.js compare these words). at: position of each
    level: its value, or 0, 1, 2... on a category axis. text: the label of each level.
    """

    title: str
    unit: str
    kind: str
    at: tuple[float, ...]
    text: tuple[str, ...]

    @property
    def label(self) -> str:
        """Title and unit: "outage (s)"."""
        unit = unit_beside(self.title, self.unit)
        return f"{self.title} ({unit})" if unit else self.title


@dataclass(frozen=True, slots=True)
class Row:
    """heads: names of what the row describes; fields: its numbers as text. key: identifies the variant, from which the
    page picks its colour and marker.
    """

    heads: tuple[str, ...]
    fields: tuple[str, ...]
    key: str = ""


@dataclass(frozen=True, slots=True)
class NumberTable:
    """The numbers of a figure as a table. row_titles: titles of the columns with the rows' heads; column_titles: titles
    of the columns with their fields.
    """

    caption: str
    row_titles: tuple[str, ...]
    column_titles: tuple[str, ...]
    rows: tuple[Row, ...]


def level_axis(data: RunData, factor: str, levels: Sequence[str]) -> Axis:
    """An axis for a factor's levels: numbers in one unit if every level is a quantity of the same kind; otherwise
    categories in the order given.
    """
    distinct = list(dict.fromkeys(levels))
    title = data.factor_title(factor)
    numeric = _in_one_unit(distinct)
    if numeric is None:
        return place_axis(title, [data.level_title(factor, level) for level in distinct])
    at, unit = numeric
    return Axis(title, unit, log_or_linear(at), at, tuple(given(value, 6) for value in at))


def tick_texts(axis: Axis) -> tuple[str, ...]:
    """The labels along the axis. Levels that would overlap (716 and 717 of 65536) share one label, "716/717",
    at the first of them; the others get an empty one.
    """
    place = [math.log(value) if axis.kind == "log" else value for value in axis.at]
    texts = list(axis.text)
    order = sorted(range(len(place)), key=place.__getitem__)
    first = order[0]
    for number in order[1:]:
        if place[number] - place[first] < (max(place) - min(place)) * TOO_CLOSE:
            texts[first], texts[number] = f"{texts[first]}/{texts[number]}", ""
        else:
            first = number
    return tuple(texts)


def in_plan_order(data: RunData, factor: str, levels: Iterable[str]) -> list[str]:
    """Distinct levels as the spec lists them; "-" (does not apply) first."""
    return [level for (level,) in in_level_order(data.plan, (factor,), ((level,) for level in levels))]


def place_axis(title: str, texts: Sequence[str], unit: str = "") -> Axis:
    """A category axis: the texts side by side, in their order."""
    return Axis(title, unit, "category", tuple(float(place) for place in range(len(texts))), tuple(texts))


def log_or_linear(values: Iterable[float]) -> str:
    """ "log" if all values are above 0 and the largest is at least LOG_FROM times the smallest; else "linear"."""
    known = list(values)
    return "log" if known and min(known) > 0 and max(known) >= LOG_FROM * min(known) else "linear"


def _in_one_unit(levels: Sequence[str]) -> tuple[tuple[float, ...], str] | None:
    """Levels in the unit of the largest one; None unless all are quantities of one kind with a unit."""
    try:
        quantities = [parse_quantity(level) for level in levels]
        if len({quantity.kind for quantity in quantities}) != 1:
            return None
        largest = levels[max(range(len(levels)), key=lambda index: quantities[index].value)]
        unit = re.sub(r"^[^A-Za-z%]*(?:[eE][+-]?\d+)?\s*", "", largest.strip())
        if not unit:
            return None
        unit_value = parse_quantity(f"1 {unit}").value
    except QuantityError:
        return None
    return tuple(quantity.value / unit_value for quantity in quantities), unit
