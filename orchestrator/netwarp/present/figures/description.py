"""The description of a figure: its data, marks, axes and intervals. print.py draws it on paper, and static/figures.js
on the page; neither decides anything about the numbers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ...core.numbers import given
from ...core.units import QuantityError, parse_quantity
from ...plan.types import in_level_order
from ..run_data import RunData, heading

LOG_FROM = 30.0
"""A numeric axis (or colour) whose largest value is this many times its smallest is logarithmic."""
TOO_CLOSE = 0.01
"""Levels closer to each other than this fraction of the axis share one label."""
MARKERS = 12
"""About this many markers on a curve of many points, so that it can be recognised without its colour."""


@dataclass(frozen=True, slots=True)
class Axis:
    """kind: linear, log or category. at, text: places that are labelled; empty: the drawing chooses them.

    On a category axis the places are 0, 1, 2... span: the ends of the axis, where they are fixed.
    """

    title: str
    unit: str
    kind: str = "linear"
    at: tuple[float, ...] = ()
    text: tuple[str, ...] = ()
    span: tuple[float, float] | None = None
    from_zero: bool = False

    @property
    def label(self) -> str:
        """Title and unit: "outage (s)"."""
        return heading(self.title, self.unit)

    @property
    def ticks(self) -> tuple[str, ...]:
        """The labels along the axis. Levels that would overlap (716 and 717 of 65536) share one label, "716/717",
        at the first of them; the others get an empty one.
        """
        if not self.at:
            return ()
        place = [math.log(value) if self.kind == "log" else value for value in self.at]
        texts = list(self.text)
        order = sorted(range(len(place)), key=place.__getitem__)
        first = order[0]
        for number in order[1:]:
            if place[number] - place[first] < (max(place) - min(place)) * TOO_CLOSE:
                texts[first], texts[number] = f"{texts[first]}/{texts[number]}", ""
            else:
                first = number
        return tuple(texts)


@dataclass(frozen=True, slots=True)
class Series:
    """Points of one variant in one source.

    key: identifies the variant's look. form: lines, steps (a value holds until the next) or points. source: its place
    in Chart.sources; 0 is what was measured here. every: one of so many points has a marker. low, high: ends of the
    95 % intervals of n cells, None where there is none. cells: those behind each point, or once those behind
    all. Of a source that was not measured here these are empty. note: stands beside the label. thin: one of many lines
    of a variant.
    """

    key: str
    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    cells: tuple[tuple[str, ...], ...]
    form: str = "lines"
    source: int = 0
    every: int = 1
    thin: bool = False
    low: tuple[float | None, ...] = ()
    high: tuple[float | None, ...] = ()
    n: tuple[int, ...] = ()
    note: str = ""

    def interval(self, place: int) -> tuple[float | None, float | None, int | None]:
        """Ends of the interval of a point, and its number of cells."""
        return (self.low[place], self.high[place], self.n[place] or None) if self.n else (None, None, None)


@dataclass(frozen=True, slots=True)
class Box:
    """The distribution of one variant at one place. at, width: on the x axis.

    quartiles: smallest, first quartile, median, third quartile, largest (linear interpolation between values).
    """

    key: str
    label: str
    at: float
    width: float
    quartiles: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """Lines, steps, points and boxes over one pair of axes. bands: from and to on the x axis, grey behind everything.
    sources: titles of those that any series is from.
    """

    x: Axis
    y: Axis
    series: tuple[Series, ...]
    boxes: tuple[Box, ...] = ()
    bands: tuple[tuple[float, float], ...] = ()
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GridPanel:
    """One of several charts with the same axes; as `Chart`."""

    label: str
    series: tuple[Series, ...]
    bands: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Grid:
    """Small charts side by side, over one pair of axes. legend: whether lines need one beside the panels' labels."""

    x: Axis
    y: Axis
    panels: tuple[GridPanel, ...]
    legend: bool


@dataclass(frozen=True, slots=True)
class Spot:
    """One place of a heat map. value: the mean, in the unit shown; None if there is none, and `why` says why. text: the
    value as it is written there. cells: those it is the mean of.
    """

    value: float | None
    text: str
    why: str
    n: int
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Panel:
    """spots: by row (y) and column (x); None where the experiment has no such cell."""

    label: str
    spots: tuple[tuple[Spot | None, ...], ...]


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Panels of the same two axes of places. value: what the colour means, kind log or linear, with the marks beside
    its scale.
    """

    x: Axis
    y: Axis
    value: Axis
    panels: tuple[Panel, ...]


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


Marks = Chart | HeatMap | Grid


@dataclass(frozen=True, slots=True)
class Drawing:
    """A figure of the spec, ready for page and paper. words: for those who cannot see it; table, csv: its numbers."""

    name: str
    title: str
    conditions: str
    words: str
    marks: Marks
    table: NumberTable
    csv: bytes


def payload(marks: Marks) -> Mapping[str, Any]:
    """The description as the page's script reads it."""
    described = asdict(marks)
    for name in ("x", "y", "value"):
        if axis := getattr(marks, name, None):
            described[name] |= {"label": axis.label, "ticks": axis.ticks}
    kinds = {Chart: "chart", HeatMap: "heatmap", Grid: "grid"}
    return {"kind": kinds[type(marks)], **described}


def level_axis(data: RunData, factor: str, levels: Sequence[str]) -> Axis:
    """An axis for a factor's levels: numbers in one unit if there are several and all have one; otherwise categories in
    the order given.
    """
    distinct = list(dict.fromkeys(levels))
    title = data.plan.factor_title(factor)
    titles = [data.plan.level_title(factor, level) for level in distinct]
    scale = level_scale(distinct, titles)
    at = tuple(value for value in scale.values if value is not None) if scale else ()
    if scale is None or len(at) < len(distinct):
        return place_axis(title, titles)
    return Axis(title, scale.unit, log_or_linear(at), at, tuple(given(value, 6) for value in at))


def level_places(data: RunData, factor: str, levels: Sequence[str], beside: float = 0.5) -> Axis:
    """Levels side by side whatever they are. beside: the room before the first and behind the last."""
    axis = level_axis(data, factor, levels) if factor else place_axis("", levels)
    return place_axis(axis.title, axis.text, axis.unit, beside)


def place_axis(title: str, texts: Sequence[str], unit: str = "", beside: float = 0.3) -> Axis:
    """A category axis: the texts side by side, in their order."""
    at = tuple(float(place) for place in range(len(texts)))
    return Axis(title, unit, "category", at, tuple(texts), (-beside, len(texts) - 1 + beside))


def value_axis(title: str, unit: str, values: Sequence[float], kind: str) -> Axis:
    """An axis of measured values: a linear one of values above 0 begins there, a logarithmic one has its marks."""
    if kind != "log":
        return Axis(title, unit, kind, from_zero=all(value >= 0 for value in values))
    marks = decades(min(values), max(values))
    marks = marks if len(marks) > 1 else decades(min(values) / 2, max(values) * 2)
    return Axis(title, unit, kind, marks, tuple(given(mark) for mark in marks))


def decades(low: float, high: float) -> tuple[float, ...]:
    """1, 2, 5 and their tens between two values (charts.js: the same)."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    marks = [float(f"{step}e{power}") for power in powers for step in ((1,) if high > 1000 * low else (1, 2, 5))]
    return tuple(mark for mark in marks if low * 0.999 <= mark <= high * 1.001)


def in_plan_order(data: RunData, factor: str, levels: Iterable[str]) -> list[str]:
    """Distinct levels as the spec lists them; "-" (does not apply) first."""
    return [level for (level,) in in_level_order(data.plan, (factor,), ((level,) for level in levels))]


def log_or_linear(values: Iterable[float]) -> str:
    """ "log" if all values are above 0 and the largest is at least LOG_FROM times the smallest; else "linear"."""
    known = list(values)
    return "log" if known and min(known) > 0 and max(known) >= LOG_FROM * min(known) else "linear"


def marked(points: int) -> int:
    """One of so many points of a curve has a marker."""
    return max(1, points // MARKERS)


@dataclass(frozen=True, slots=True)
class Scale:
    """The numbers of a factor's levels in one unit, which may be a word ("2 flows"). values: None of a level that is no
    number.
    """

    values: tuple[float | None, ...]
    unit: str


_COUNT = re.compile(r"(0|[1-9]\d*|\d+(?:\.\d+)?e[+-]?\d+)(?: ([a-z]+))?")
"""No version ("6.12"), and no number within a text ("10 packets (Linux)")."""


def level_scale(levels: Sequence[str], titles: Sequence[str]) -> Scale | None:
    """The levels as numbers of one unit. A level that is no quantity is read by its title: "2 flows", "10". None: fewer
    than two are numbers, or they have several kinds.
    """
    numbers = [_quantity(level) or _count(title) for level, title in zip(levels, titles, strict=True)]
    known = [number for number in numbers if number is not None]
    if len(known) < 2 or len({kind for kind, _, _ in known}) > 1:
        return None
    _, unit, _ = max(known, key=lambda number: number[2])
    one = parse_quantity(f"1 {unit}").value if _quantity(f"1 {unit}") else 1
    return Scale(tuple(None if number is None else number[2] / one for number in numbers), unit)


def _quantity(level: str) -> tuple[str, str, float] | None:
    """Kind, unit as it is written and base value of a quantity with a unit."""
    unit = re.sub(r"^[^A-Za-z%]*(?:[eE][+-]?\d+)?\s*", "", level.strip())
    try:
        quantity = parse_quantity(level)
    except QuantityError:
        return None
    return (quantity.kind, unit, quantity.value) if unit else None


def _count(title: str) -> tuple[str, str, float] | None:
    """The same of a number that stands alone or beside one word, in singular or plural."""
    found = _COUNT.fullmatch(title)
    if found is None:
        return None
    word = found[2] or ""
    return f"count of {word.removesuffix('s')}", word, float(found[1])
