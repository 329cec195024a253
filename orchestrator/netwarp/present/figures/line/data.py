"""Data of a figure of kind line: the points of every variant and source; page.js and print.py draw them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from ....core.numbers import DASH, readable, scale
from ....core.outputs import Figure
from ....results.write import csv_bytes
from ...axes import Axis, NumberTable, Row, level_axis, tick_texts
from ...entries import Entries, Entry, read_entries
from ...result_tables import conditions
from ...run_data import RunData


@dataclass(frozen=True, slots=True)
class Line:
    """One variant in one source. key: identifies the variant's look; source: "" for what was measured here.

    low, high: 95 % confidence intervals, None if there are none. cells: those behind each point.
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
    numbers = read_entries(data, figure)
    if all(entry.value is None and not entry.references for entry in numbers.entries):
        return None
    x = level_axis(data, figure.x, [entry.levels[-1] for entry in numbers.entries])
    metric = data.metrics.get(figure.metric)
    values = [value for entry in numbers.entries for value in (entry.value, *entry.references.values())]
    divisor, unit = scale(values, metric.unit if metric else "")
    log = figure.log and all(value is None or value > 0 for value in values)
    y = Axis(metric.title if metric else figure.metric, unit, "log" if log else "linear", (), ())
    sources = (("", data.system), *((source, data.source_title(source)) for source in numbers.sources))
    at = levels_at(numbers, x)
    lines = tuple(line for source, _ in sources for line in _lines(data, figure, numbers, source, at, divisor))
    return FigureData(figure.name, figure.title, conditions(data, figure.where, figure.axes), x, y, lines, sources)


def levels_at(numbers: Entries, axis: Axis) -> dict[str, float]:
    """Level of the x factor -> its position on the axis."""
    levels = list(dict.fromkeys(entry.levels[-1] for entry in numbers.entries))
    return dict(zip(levels, axis.at, strict=True))


def line_key(factors: Sequence[str], levels: Sequence[str]) -> str:
    """The key of a variant in every figure and table; factors that do not apply are left out."""
    return "|".join(f"{f}={level}" for f, level in zip(factors, levels, strict=True) if level != "-")


def line_label(data: RunData, factors: Sequence[str], levels: Sequence[str]) -> str:
    """A variant in words."""
    pairs = zip(factors, levels, strict=True)
    return ", ".join(data.level_title(f, level) for f, level in pairs if level != "-") or "all"


def _lines(
    data: RunData, figure: Figure, numbers: Entries, source: str, at: dict[str, float], divisor: float
) -> list[Line]:
    grouped: dict[tuple[str, ...], list[Entry]] = {}
    for entry in numbers.entries:
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
    """The numbers of a figure, one row per point, in the units drawn."""
    titles = dict(figure.sources)
    levels = dict(zip(figure.x.at, figure.x.text, strict=True))
    return csv_bytes(
        ["line", "source", figure.x.label, figure.y.label, "ci95_low", "ci95_high", "n"],
        (
            (line.label, titles[line.source], levels[x], y, low, high, n or None)
            for line in figure.lines
            for x, y, low, high, n in zip(line.x, line.y, line.low, line.high, line.n, strict=True)
        ),
    )


def figure_json(figure: FigureData) -> dict[str, object]:
    """The data from which the page's script (page.js) draws."""
    described = asdict(figure)
    described["x"]["label"], described["y"]["label"] = figure.x.label, figure.y.label
    described["x"]["ticks"] = tick_texts(figure.x)
    return {"kind": "line", **described}


def figure_table(figure: FigureData) -> NumberTable:
    """One row per line and source, one column per level."""
    unit = f" {figure.x.unit}" if figure.x.unit else ""
    titles = dict(figure.sources)
    return NumberTable(
        caption=f"{figure.title}: {figure.y.label}",
        row_titles=("line", "source"),
        column_titles=tuple(text + unit for text in figure.x.text),
        rows=tuple(
            Row((line.label, titles[line.source]), tuple(_field(line, at) for at in figure.x.at), line.key)
            for line in figure.lines
        ),
    )


def _field(line: Line, at: float) -> str:
    """A number with its interval; a dash where the line has none."""
    if at not in line.x:
        return DASH
    place = line.x.index(at)
    low, high = line.low[place], line.high[place]
    interval = f" ({readable(low)} to {readable(high)})" if low is not None and high is not None else ""
    return readable(line.y[place]) + interval


def figure_words(figure: FigureData) -> str:
    """A chart in words, for those who cannot see it: what is drawn, and how each measured line runs."""
    runs = []
    for line in figure.lines:
        if not line.source:
            at = dict(zip(figure.x.at, figure.x.text, strict=True))
            start, end = f"{readable(line.y[0])} at {at[line.x[0]]}", f"{readable(line.y[-1])} at {at[line.x[-1]]}"
            runs.append(f"{line.label}: {start}" + (f", {end}" if len(line.y) > 1 else ""))
    return f"{figure.y.label} over {figure.x.label}. " + ". ".join(runs) + ". All numbers are in the table below."
