"""Figures of kind line: the mean of each variant over the levels of a factor, beside the sources' numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...core import outputs
from ...core.numbers import DASH, in_shown_unit, readable, scale
from ...results.write import csv_bytes
from ..result_tables import Entry, conditions, read_entries
from ..run_data import RunData
from .description import Chart, Drawing, NumberTable, Row, Series, level_axis, value_axis


def line_figure(data: RunData, figure: outputs.Figure) -> Drawing | None:
    """The figure; None where the run has no numbers for it."""
    numbers = read_entries(data, figure)
    values = [value for entry in numbers.entries for value in entry.values if value is not None]
    if not values:
        return None
    levels = list(dict.fromkeys(entry.levels[-1] for entry in numbers.entries))
    x = level_axis(data, figure.x, levels)
    at = dict(zip(levels, x.at, strict=True))
    metric = data.metrics.get(figure.metric)
    divisor, unit = scale(values, metric.unit if metric else "")
    log = figure.log and all(value > 0 for value in values)
    y = value_axis(
        metric.title if metric else figure.metric, unit, [v / divisor for v in values], "log" if log else "linear"
    )
    variants: dict[tuple[str, ...], list[Entry]] = {}
    for entry in sorted(numbers.entries, key=lambda entry: at[entry.levels[-1]]):
        variants.setdefault(entry.levels[:-1], []).append(entry)
    ordered = list(dict.fromkeys(entry.levels[:-1] for entry in numbers.entries))
    series = tuple(
        made
        for rank, source in enumerate(("", *numbers.sources))
        for variant in ordered
        if (made := _series(data, figure.lines, variant, variants[variant], (rank, source), at, divisor)) is not None
    )
    sources = (data.system, *(data.source_title(source) for source in numbers.sources))
    chart = Chart(x, y, series, sources=sources)
    title = in_shown_unit(figure.title, metric.unit if metric else "", unit)
    texts = dict(zip(x.at, x.text, strict=True))
    return Drawing(
        figure.name, title, conditions(data, figure.where, figure.axes), _words(chart, texts), chart,
        _table(title, chart), _csv(chart, texts),
    )  # fmt: skip


def line_key(factors: Sequence[str], levels: Sequence[str]) -> str:
    """The key of a variant in every figure and table; factors that do not apply are left out."""
    return "|".join(f"{f}={level}" for f, level in zip(factors, levels, strict=True) if level != "-")


def line_label(data: RunData, factors: Sequence[str], levels: Sequence[str]) -> str:
    """A variant in words."""
    pairs = zip(factors, levels, strict=True)
    return ", ".join(distinct_words(data.plan.level_title(f, level) for f, level in pairs if level != "-")) or "all"


def distinct_words(words: Iterable[str]) -> tuple[str, ...]:
    """Words without those that say the same in small letters: the flow "cubic" of the level "CUBIC" is named once."""
    kept: dict[str, str] = {}
    for word in words:
        if kept.get(word.casefold(), word).islower() or word.casefold() not in kept:
            kept[word.casefold()] = word
    return tuple(kept.values())


def _series(
    data: RunData,
    factors: Sequence[str],
    variant: Sequence[str],
    entries: Sequence[Entry],
    source: tuple[int, str],
    at: dict[str, float],
    divisor: float,
) -> Series | None:
    """One variant in one source (its rank and name; "" is what was measured here); None where it has no number."""
    rank, name = source
    numbers = [(entry, entry.references.get(name) if name else entry.value) for entry in entries]
    points = [(entry, value / divisor) for entry, value in numbers if value is not None]
    if not points:
        return None
    own = [entry for entry, _ in points if not rank]
    return Series(
        key=line_key(factors, variant),
        label=line_label(data, factors, variant),
        x=tuple(at[entry.levels[-1]] for entry, _ in points),
        y=tuple(value for _, value in points),
        cells=tuple(entry.cells for entry in own),
        source=rank,
        low=tuple(None if entry.low is None else entry.low / divisor for entry in own),
        high=tuple(None if entry.high is None else entry.high / divisor for entry in own),
        n=tuple(entry.n for entry in own),
    )


def _csv(chart: Chart, texts: dict[float, str]) -> bytes:
    """One row a point, in the units drawn."""
    return csv_bytes(
        ["line", "source", chart.x.label, chart.y.label, "ci95_low", "ci95_high", "n"],
        (
            (line.label, chart.sources[line.source], texts[x], y, *line.interval(place))
            for line in chart.series
            for place, (x, y) in enumerate(zip(line.x, line.y, strict=True))
        ),
    )


def _table(title: str, chart: Chart) -> NumberTable:
    """One row per line and source, one column per level."""
    unit = f" {chart.x.unit}" if chart.x.unit else ""
    return NumberTable(
        caption=f"{title}: {chart.y.label}",
        row_titles=("line", "source"),
        column_titles=tuple(text + unit for text in chart.x.text),
        rows=tuple(
            Row((line.label, chart.sources[line.source]), tuple(_field(line, at) for at in chart.x.at), line.key)
            for line in chart.series
        ),
    )


def _field(line: Series, at: float) -> str:
    """A number with its interval; a dash where the line has none."""
    if at not in line.x:
        return DASH
    place = line.x.index(at)
    low, high, _ = line.interval(place)
    interval = f" ({readable(low)} to {readable(high)})" if low is not None and high is not None else ""
    return readable(line.y[place]) + interval


def _words(chart: Chart, texts: dict[float, str]) -> str:
    """What is drawn, and how each measured line runs."""
    runs = []
    for line in chart.series:
        if not line.source:
            start, end = (f"{readable(line.y[place])} at {texts[line.x[place]]}" for place in (0, -1))
            runs.append(f"{line.label}: {start}" + (f", {end}" if len(line.y) > 1 else ""))
    return f"{chart.y.label} over {chart.x.label}. " + ". ".join(runs) + ". All numbers are in the table below."
