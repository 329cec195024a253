"""A figure of the spec as data: an x axis, and for every line and every source its points. Drawn twice from here."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from ..study import Figure
from ..units import QuantityError, parse_quantity
from .data import RunData
from .entries import Entries, Entry, levels_of, read_entries
from .grids import conditions
from .numbers import scale
from .style import Look, looks

LOG_FROM = 30.0
"""A numeric axis whose largest level is this many times its smallest is logarithmic."""


@dataclass(frozen=True, slots=True)
class Axis:
    """kind: linear, log or category. at, text: where each level stands (its number, or its place) and how it reads."""

    title: str
    unit: str
    kind: str
    at: tuple[float, ...]
    text: tuple[str, ...]

    @property
    def label(self) -> str:
        """Title and unit: "outage (s)"."""
        return f"{self.title} ({self.unit})" if self.unit and self.unit != "ratio" else self.title


@dataclass(frozen=True, slots=True)
class Line:
    """One variant as one source has it. key: the variant's, for its look; source: "" is what was measured here.

    low, high: 95 % confidence intervals, None where there are none. cells: the cells behind each point.
    """

    key: str
    label: str
    source: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]
    n: tuple[int, ...]
    cells: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class FigureData:
    """A figure ready to be drawn; all y already divided to `y.unit`. sources: (name, title), "" first."""

    name: str
    title: str
    conditions: str
    x: Axis
    y: Axis
    lines: tuple[Line, ...]
    sources: tuple[tuple[str, str], ...]


def make_figure(data: RunData, figure: Figure) -> FigureData | None:
    """The figure's data; None where the run has no numbers for it."""
    found = read_entries(data, figure)
    if not found.entries:
        return None
    x = x_axis(data, figure.x, [entry.levels[-1] for entry in found.entries])
    metric = data.metrics.get(figure.metric)
    values = [value for entry in found.entries for value in (entry.value, *entry.references.values())]
    divisor, unit = scale(values, metric.unit if metric else "")
    y = Axis(metric.title if metric else figure.metric, unit, "linear", (), ())
    sources = (("", data.system), *((source, data.source_title(source)) for source in found.sources))
    at = levels_at(found, x)
    lines = tuple(line for source, _ in sources for line in _lines(data, figure, found, source, at, divisor))
    return FigureData(figure.name, figure.title, conditions(data, figure.where), x, y, lines, sources)


def levels_at(found: Entries, axis: Axis) -> dict[str, float]:
    """Level of the x factor -> where it stands."""
    levels = list(dict.fromkeys(entry.levels[-1] for entry in found.entries))
    return dict(zip(levels, axis.at, strict=True))


def x_axis(data: RunData, factor: str, levels: Sequence[str]) -> Axis:
    """Numbers in one unit where every level is a quantity of one kind; else places 0, 1, 2... in plan order."""
    distinct = list(dict.fromkeys(levels))
    title = data.factor_title(factor)
    text = tuple(data.level_title(factor, level) for level in distinct)
    numeric = _in_one_unit(distinct)
    if numeric is None:
        return Axis(title, "", "category", tuple(float(place) for place in range(len(distinct))), text)
    at, unit = numeric
    smallest, largest = min(at), max(at)
    kind = "log" if smallest > 0 and largest >= LOG_FROM * smallest else "linear"
    return Axis(title, unit, kind, at, tuple(f"{value:g}" for value in at))


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
        one = parse_quantity(f"1 {unit}").value
    except QuantityError:
        return None
    return tuple(quantity.value / one for quantity in quantities), unit


def line_key(factors: Sequence[str], levels: Sequence[str]) -> str:
    """What a variant is known by, in every figure and table: factors that do not apply are left out."""
    return "|".join(f"{f}={level}" for f, level in zip(factors, levels, strict=True) if level != "-")


def line_label(data: RunData, factors: Sequence[str], levels: Sequence[str]) -> str:
    """A variant in words."""
    pairs = zip(factors, levels, strict=True)
    return ", ".join(data.level_title(f, level) for f, level in pairs if level != "-") or "all"


def variant_looks(data: RunData) -> dict[str, Look]:
    """A look for every variant any figure draws, in plan order, so that each keeps its own everywhere."""
    keys = [
        line_key(figure.lines, levels_of(result.cell.factors, figure.lines))
        for result in data.cells
        for figure in data.plan.figures
    ]
    return looks(keys)


def _lines(
    data: RunData, figure: Figure, found: Entries, source: str, at: dict[str, float], divisor: float
) -> list[Line]:
    grouped: dict[tuple[str, ...], list[Entry]] = {}
    for entry in found.entries:
        if (entry.references.get(source) if source else entry.value) is not None:
            grouped.setdefault(entry.levels[:-1], []).append(entry)
    lines = []
    for levels, entries in grouped.items():
        entries.sort(key=lambda entry: at[entry.levels[-1]])
        own = not source
        lines.append(
            Line(
                key=line_key(figure.lines, levels),
                label=line_label(data, figure.lines, levels),
                source=source,
                x=tuple(at[entry.levels[-1]] for entry in entries),
                y=tuple((entry.references[source] if source else entry.value or 0.0) / divisor for entry in entries),
                low=tuple(entry.low / divisor if own and entry.low is not None else None for entry in entries),
                high=tuple(entry.high / divisor if own and entry.high is not None else None for entry in entries),
                n=tuple(entry.n if own else 0 for entry in entries),
                cells=tuple(entry.cells if own else () for entry in entries),
            )
        )
    return lines


def figure_csv(figure: FigureData) -> bytes:
    """The numbers behind a figure, a row a point, in the units drawn."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["line", "source", figure.x.label, figure.y.label, "ci95_low", "ci95_high", "n"])
    titles = dict(figure.sources)
    levels = dict(zip(figure.x.at, figure.x.text, strict=True))
    for line in figure.lines:
        for x, y, *interval, n in zip(line.x, line.y, line.low, line.high, line.n, strict=True):
            bounds = ["" if bound is None else repr(bound) for bound in interval]
            writer.writerow([line.label, titles[line.source], levels[x], repr(y), *bounds, n or ""])
    return out.getvalue().encode()


def figure_json(figure: FigureData) -> dict[str, object]:
    """What the page's script draws from."""
    described = asdict(figure)
    described["x"]["label"], described["y"]["label"] = figure.x.label, figure.y.label
    return described
