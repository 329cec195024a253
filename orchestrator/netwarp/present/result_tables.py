"""The numbers of tables/<name>.csv beside the cells they came from, and a table of the spec as rows and columns: every
source beside the kernel, differences marked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..core.numbers import MINUS, THIN, decimals, fixed, in_shown_unit, plain, readable, scale
from ..core.outputs import EXPERIMENT, FLOW, Figure, Table
from ..core.subjects import subjects
from ..plan.notes import buffer_notes
from ..plan.types import in_level_order
from ..store.tables import number
from .run_data import Row, RunData, unit_beside

GRADES = (0.01, 0.05, 0.15)
"""Relative differences from which the colour of a difference is stronger: 1 %, 5 %, 15 %."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One place of a table: its levels, the number measured there (base unit), and the sources' numbers.

    low, high: 95 % confidence interval over n repetitions, None if there is none. without: how many more had no value.
    spread: deterministic, single or ci95, or the statistic that was asked for. note: what is missing. cells: ids of the
    cells of this place, completed or not.
    """

    levels: tuple[str, ...]
    value: float | None
    low: float | None
    high: float | None
    n: int
    without: int
    spread: str
    note: str
    references: Mapping[str, float]
    cells: tuple[str, ...]

    @property
    def values(self) -> tuple[float | None, ...]:
        """Its number and those of the sources."""
        return (self.value, *self.references.values())


@dataclass(frozen=True, slots=True)
class Entries:
    """Every number of a table or figure over `factors`; `sources`: those that say anything here, in plan order, and the
    metrics that stand beside it.
    """

    factors: tuple[str, ...]
    entries: tuple[Entry, ...]
    sources: tuple[str, ...]
    printed: Mapping[str, str]
    """source -> where it prints them ("Table 5")."""


def read_entries(data: RunData, output: Table | Figure) -> Entries:
    """Put the rows of tables/<name>.csv beside the cells they came from."""
    factors = output.axes
    sources = (*(source.name for source in data.plan.sources), *output.beside)
    places: dict[tuple[str, ...], list[str]] = {}
    results = [result for result in data.cells if data.selection.has(result.cell, output.where)]
    for result in results:
        for flow in subjects(result.cell, output.metric) if FLOW in factors else [""]:
            places.setdefault(levels_of({**result.cell.factors, FLOW: flow}, factors), []).append(result.id)
    entries = tuple(_entry(row, factors, sources, places) for row in data.tables.get(data.plan.rows_of(output), ()))
    used = tuple(source for source in sources if any(source in entry.references for entry in entries))
    printed = {
        expected.source: expected.printed
        for expected in reversed(data.plan.expected)
        if expected.metric == output.metric
        and expected.printed
        and any(data.selection.has(result.cell, expected.at) for result in results)
    }
    return Entries(factors, entries, used, printed)


def levels_of(factors: Mapping[str, str], names: Sequence[str]) -> tuple[str, ...]:
    """A cell's levels of some factors, "-" if one does not apply."""
    return tuple(factors.get(factor, "-") for factor in names)


def _entry(
    row: Row, factors: tuple[str, ...], sources: tuple[str, ...], places: Mapping[tuple[str, ...], Sequence[str]]
) -> Entry:
    levels = levels_of(row, factors)
    return Entry(
        levels=levels,
        value=number(row.get("value")),
        low=number(row.get("ci95_low")),
        high=number(row.get("ci95_high")),
        n=int(number(row.get("repetitions")) or 0),
        without=int(number(row.get("without_value")) or 0),
        spread=row.get("spread") or "",
        note=row.get("note") or "",
        references={source: value for source in sources if (value := number(row.get(source))) is not None},
        cells=tuple(places.get(levels, ())),
    )


@dataclass(frozen=True, slots=True)
class Difference:
    """Relative difference of a measured value from another. `grade`: 0 (below 1 %) to 3 (above 15 %); `sign`:
    -1, 0, 1.
    """

    text: str
    sign: int
    grade: int
    ratio: float | None


def difference(value: float | None, reference: float | None) -> Difference | None:
    """Relative difference; absolute if the reference is 0; None if either is missing."""
    if value is None or reference is None:
        return None
    if reference == 0:
        sign = (value > 0) - (value < 0)
        return Difference(_signed(readable(abs(value)), sign), sign, 0 if sign == 0 else 3, None)
    ratio = (value - reference) / abs(reference)
    grade = sum(abs(ratio) >= limit for limit in GRADES)
    percent = fixed(abs(ratio) * 100, 1 if abs(ratio) < 0.0995 else 0)
    sign = 0 if percent == "0.0" else (1 if ratio > 0 else -1)
    return Difference(f"{_signed(percent, sign)}{THIN}%", sign, grade, ratio)


def _signed(text: str, sign: int) -> str:
    return {-1: MINUS, 0: "\u00b1", 1: "+"}[sign] + text


@dataclass(frozen=True, slots=True)
class Number:
    """One number as shown. `exact`: all its digits. `half`: half of its 95 % interval, empty where there is none; `n`:
    how many draws it is the mean of, 0 where it is deterministic or all were equal. `share`: "5 of 10", the draws that
    have a value, where others have none.
    """

    text: str
    exact: str
    half: str = ""
    n: int = 0
    share: str = ""

    @property
    def sure(self) -> str:
        """ "± 0.3 (n = 5)", "± 0.3 (n = 5 of 10)", empty where it is deterministic and no draw lacks it."""
        if self.half:
            return f"\u00b1 {self.half} (n = {self.share or self.n})"
        return f"of {self.share} draws" if self.share else "one draw" if self.n == 1 else ""


@dataclass(frozen=True, slots=True)
class GridField:
    """One combination of row and column: each source's number (None: none), ours, and our differences.

    note: why our number is missing, or what is missing of it.
    """

    references: tuple[Number | None, ...]
    measured: Number | None
    differences: tuple[Difference | None, ...]
    cells: tuple[str, ...]
    note: str


@dataclass(frozen=True, slots=True)
class Grid:
    """A table ready to be written. row_heads, column_heads: level titles, one tuple a row or column; row_levels: the
    levels themselves, of the factors row_names; row_shown: those of them that have a column, since rows differ in them.
    sources: (name, title, where it prints these numbers); source_heads: the heads of their columns. unit: empty where
    the metric's title says it.
    """

    name: str
    title: str
    metric: str
    unit: str
    row_names: tuple[str, ...]
    row_levels: tuple[tuple[str, ...], ...]
    row_factors: tuple[str, ...]
    row_shown: tuple[int, ...]
    column_factors: tuple[str, ...]
    column_heads: tuple[tuple[str, ...], ...]
    row_heads: tuple[tuple[str, ...], ...]
    rows: tuple[tuple[GridField | None, ...], ...]
    sources: tuple[tuple[str, str, str], ...]
    source_heads: tuple[str, ...]
    system: str
    conditions: str
    notes: tuple[str, ...] = ()
    """Buffers that may decide its numbers."""
    missing: str = ""
    """The first reason why a place has no number; "" if every place has one."""


def make_grid(data: RunData, table: Table) -> Grid | None:
    """The grid of a table; None where the run has no rows for it."""
    numbers = read_entries(data, table)
    if not numbers.entries:
        return None
    split = len(table.rows)
    rows = list(dict.fromkeys(entry.levels[:split] for entry in numbers.entries))
    columns = in_level_order(data.plan, table.columns, (entry.levels[split:] for entry in numbers.entries))
    by_place = {entry.levels: entry for entry in numbers.entries}
    metric = data.metrics.get(table.metric)
    title, unit = (metric.title, metric.unit) if metric else (table.metric, "")
    title = title if table.statistic == "mean" else f"{title}, {table.statistic} of the draws"
    divisor, shown_unit = scale([value for e in numbers.entries for value in e.values], unit)
    places = _decimals(numbers.entries, numbers.sources, divisor)
    shown = _shown_rows(rows, split)
    alike = {table.rows[place]: (rows[0][place],) for place in range(split) if place not in shown}
    return Grid(
        name=table.name,
        title=in_shown_unit(table.title, unit, shown_unit),
        metric=title,
        unit=unit_beside(title, shown_unit),
        row_names=table.rows,
        row_levels=tuple(rows),
        row_factors=tuple(data.plan.factor_title(table.rows[place]) for place in shown),
        row_shown=shown,
        column_factors=tuple(data.plan.factor_title(factor) for factor in table.columns),
        column_heads=tuple(_titles(data, table.columns, levels) for levels in columns),
        row_heads=tuple(
            _titles(data, tuple(table.rows[place] for place in shown), tuple(levels[place] for place in shown))
            for levels in rows
        ),
        rows=tuple(
            tuple(
                _place(entry, numbers.sources, divisor, places) if (entry := by_place.get(row + column)) else None
                for column in columns
            )
            for row in rows
        ),
        sources=tuple(
            (source, data.source_title(source), numbers.printed.get(source, "")) for source in numbers.sources
        ),
        source_heads=tuple(data.source_title(name, short=True) for name in numbers.sources),
        system=data.system,
        conditions=conditions(data, {**table.where, **alike}, [axis for axis in table.axes if axis not in alike]),
        notes=_notes(data, numbers.entries),
        missing=_missing(data, numbers.entries),
    )


def _shown_rows(rows: Sequence[tuple[str, ...]], factors: int) -> tuple[int, ...]:
    """The row factors in which rows differ; the first where none do."""
    differing = tuple(place for place in range(factors) if len({levels[place] for levels in rows}) > 1)
    return differing or tuple(range(min(factors, 1)))


def _missing(data: RunData, entries: Iterable[Entry]) -> str:
    """The first reason why a number is missing; "" if none is. Cells by their levels, metrics by title."""
    note = next((entry.note for entry in entries if entry.value is None and entry.note), "").partition(";")[0]
    if note:
        cells = {result.id: result.cell for result in data.cells if result.id in note}
        for cell_id, cell in cells.items():
            levels = [data.plan.level_title(name, level) for name, level in cell.factors.items() if level != "-"]
            note = note.replace(cell_id, ", ".join(levels) or cell.experiment)
    head, has_no, metric = note.rpartition(" has no ")
    return f"{head}{has_no}{data.metrics[metric].title}" if has_no and metric in data.metrics else note


def _notes(data: RunData, entries: Iterable[Entry]) -> tuple[str, ...]:
    shown = {cell_id for entry in entries for cell_id in entry.cells}
    return tuple(buffer_notes((each.cell for each in data.cells if each.id in shown), data.manifest.backend))


def conditions(data: RunData, where: dict[str, tuple[str, ...]], axes: Sequence[str] = ()) -> str:
    """A selector in words: "reading: one-way delay; fault: cut" ("-" says only that it may not apply); without the
    factors that stand on axes, where their levels are read.
    """
    applying = {
        factor: [level for level in levels if level != "-"]
        for factor, levels in where.items()
        if factor not in (EXPERIMENT, *axes)
    }
    return "; ".join(
        f"{data.plan.factor_title(factor)}: {', '.join(data.plan.level_title(factor, level) for level in levels)}"
        for factor, levels in applying.items()
        if levels
    )


def _titles(data: RunData, factors: tuple[str, ...], levels: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(
        "" if level == "-" else data.plan.level_title(factor, level)
        for factor, level in zip(factors, levels, strict=True)
    )


def _decimals(entries: tuple[Entry, ...], sources: tuple[str, ...], divisor: float) -> dict[str, int]:
    """Places after the point: ours to four significant digits (none of whole numbers), a source's as many as its
    numbers carry.
    """
    counted = divisor == 1 and all(entry.value is None or entry.value.is_integer() for entry in entries)
    drawn = any(entry.low is not None for entry in entries)
    places = {
        "": 0 if counted and not drawn else decimals([entry.value and entry.value / divisor for entry in entries])
    }
    for source in sources:
        carried = [plain(entry.references[source] / divisor) for entry in entries if source in entry.references]
        longest = max((len(text.partition(".")[2].partition("e")[0]) for text in carried), default=0)
        places[source] = min(longest, places[""] + 1)
    return places


def _place(entry: Entry, sources: tuple[str, ...], divisor: float, places: dict[str, int]) -> GridField:
    references = tuple(
        Number(fixed(value / divisor, places[source]), repr(value))
        if (value := entry.references.get(source)) is not None
        else None
        for source in sources
    )
    measured = None
    if entry.value is not None:
        text, half, n = fixed(entry.value / divisor, places[""]), "", 0
        if entry.low is not None and entry.high is not None:
            half, n = fixed((entry.high - entry.low) / 2 / divisor, places[""]), entry.n
        elif entry.spread == "single":
            n = 1
        share = f"{entry.n} of {entry.n + entry.without}" if entry.without else ""
        measured = Number(text, repr(entry.value), half, n, share)
    differences = tuple(difference(entry.value, entry.references.get(source)) for source in sources)
    return GridField(references, measured, differences, entry.cells, entry.note)
