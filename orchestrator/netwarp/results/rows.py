"""The rows of every table, from plan, outcomes, measurements and derived files: a header and tuples. Writes nothing."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..core.outputs import SERIES, Answer, EventTable, Figure, Statistic, Table, TimeSeries
from ..core.subjects import groups_of
from ..core.types import Cell, CellOutcome, Outcome
from ..core.units import counted
from ..plan.types import Plan, Selection, in_level_order
from ..store.derived import CellSeries, CellWindows, Exchange, FlowSeries, Sampled
from ..store.run_dir import RunDir, read_json
from .run_results import CellFlow, RepeatedValue, Results
from .verdicts import Decided

Field = str | int | float | None
CELL_COLUMNS = ("cell_id", "experiment", "repetition", "seed", "outcome", "reason", "virtual_s")
MEASUREMENT_COLUMNS = ("cell_id", "flow", "metric", "value", "unit")
CLAIM_COLUMNS = (
    *("claim", "condition", "class", "verdict", "measured", "ci95_low", "ci95_high", "measured_verdict"),
    *("expected", "unit"),
)
"""Before those of each source and column, "source" and "first_verdict" (by the rule of before an amendment)."""
DETAIL_COLUMNS = (
    *("claim", "condition", "text", "kind", "metric", "tolerance", "word", "reason"),
    *("paper_ko", "paper_en", "amended"),
)
NUMBER_COLUMNS = ("value", "unit", "spread", "repetitions", "without_value", "ci95_low", "ci95_high", "note")
SHARES: dict[Statistic, float] = {"min": 0.0, "median": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}
"""Statistic -> the share of the draws that do not exceed it."""
DRAW_COLUMNS = ("repetition", "seed", "value", "unit", "note", "cell_id")
NOT_RUN = "NOT_RUN"


@dataclass(frozen=True, slots=True)
class Rows:
    """A table: its name (the file is <name>.csv), header and rows."""

    name: str
    header: tuple[str, ...]
    rows: Iterable[tuple[Field, ...]]
    """An iterable that is read once: the rows of measurements.csv are computed while they are written."""


def cell_rows(results: Results) -> Rows:
    """cells.csv: every cell of the plan; NOT_RUN for one without an outcome."""
    factors = [factor.name for factor in results.plan.factors]
    rows: list[tuple[Field, ...]] = []
    for cell in results.plan.cells:
        name = results.name(cell)
        outcome = results.outcomes.get(name)
        ended: tuple[Field, ...] = (
            (NOT_RUN, "", None) if outcome is None else (str(outcome.outcome), outcome.reason, outcome.virtual_s)
        )
        levels = (cell.factors[name] for name in factors)
        rows.append((name, cell.experiment, cell.repetition, cell.seed, *ended, *levels))
    return Rows("cells", (*CELL_COLUMNS, *factors), tuple(rows))


def measurement_rows(results: Results) -> Rows:
    """measurements.csv: every measurement of every COMPLETED cell. An empty value: there was nothing to measure."""
    rows = (
        (row.cell_id, row.flow, row.metric, row.value, row.unit) for cell in results.by_cell.values() for row in cell
    )
    return Rows("measurements", MEASUREMENT_COLUMNS, rows)


def claim_rows(plan: Plan, decided: Sequence[Decided]) -> Rows:
    """claims.csv: one row per claim and condition, with a number and its verdict for each source, for this kernel
    ("measured") and for each column.
    """
    names = [*(source.name for source in plan.sources), *(column.name for column in plan.columns)]
    rows: list[tuple[Field, ...]] = []
    for entry in decided:
        claim, own = entry.own.claim, entry.own
        others = [judged for name in names for judged in _number(name, entry)]
        measured = (own.measured, own.low, own.high, own.verdict)
        head = (claim.id, claim.condition_text, claim.claim_class, entry.verdict)
        rows.append((*head, *measured, own.expected, own.unit, *others, claim.source, entry.first))
    header = [text for name in names for text in (name, f"{name}_verdict")]
    return Rows("claims", (*CLAIM_COLUMNS, *header, "source", "first_verdict"), tuple(rows))


def _number(name: str, entry: Decided) -> tuple[Field, Field]:
    judged = entry.sources.get(name) or entry.columns.get(name)
    return (None, "") if judged is None else (judged.measured, judged.verdict)


def detail_rows(decided: Sequence[Decided]) -> Rows:
    """claim_details.csv: the claimed value, the claim's wording and source, its test, and the reason for the
    verdict.
    """
    rows: list[tuple[Field, ...]] = []
    for entry in decided:
        claim = entry.own.claim
        ko, en = (claim.sentence.ko, claim.sentence.en) if claim.sentence is not None else ("", "")
        amended = "; ".join(f"{amendment.date}: {amendment.reason}" for amendment in claim.amendments)
        rows.append(
            (
                *(claim.id, claim.condition_text, claim.text, claim.kind, claim.metric, claim.tolerance, claim.word),
                *(entry.own.reason, ko, en, amended),
            )
        )
    return Rows("claim_details", DETAIL_COLUMNS, tuple(rows))


def number_rows(results: Results, output: Table | Figure) -> Rows:
    """A table or figure: one row per combination of levels, with the measured number and every source's number.

    value: mean over the repetitions, or the table's statistic of them. repetitions: with a value; without_value: those
    that completed and had nothing to measure. spread: deterministic; single (one draw of something random); equal in n
    draws; or ci95. note: what is missing. A source has a number in a row if it has exactly one for all cells of that
    row. The last columns are the same number of the metrics shown beside it.
    """
    plan = results.plan
    axes = output.axes
    unit = next((metric.unit for metric in plan.metrics if metric.name == output.metric), "")
    sources = [source.name for source in plan.sources]
    rows: list[tuple[Field, ...]] = []
    selection = Selection(plan)
    statistic = output.statistic if isinstance(output, Table) else "mean"
    for levels, group in combinations(results, output):
        cells, flow = [cell_flow.cell for cell_flow in group], group[0].flow
        measured = results.repeated(cells, flow, output.metric)
        value, *spread = _number_of(measured, statistic)
        others = (_published(plan, selection, source, output.metric, group) for source in sources)
        beside = (_number_of(results.repeated(cells, flow, metric), statistic)[0] for metric in output.beside)
        rows.append((*levels, value, unit, *spread, measured.missing, *others, *beside))
    return Rows(plan.rows_of(output), (*axes, *NUMBER_COLUMNS, *sources, *output.beside), tuple(rows))


def _number_of(measured: RepeatedValue, statistic: Statistic) -> tuple[Field, ...]:
    """Value, spread, repetitions, without_value and the interval's ends."""
    estimate = measured.estimate()
    if estimate is None:
        return None, "", 0, measured.without, None, None
    if statistic == "mean":
        return estimate.mean, estimate.said, estimate.n, measured.without, estimate.low, estimate.high
    value, said = measured.worst(SHARES[statistic]), f"{statistic} of {counted(estimate.n + measured.without, 'draw')}"
    return value, said, estimate.n, measured.without, None, None


def draw_rows(results: Results, figure: Figure) -> Rows:
    """A distribution: one row per cell of the figure, so that a reader can draw any other picture from it. An empty
    value has its reason in `note`.
    """
    axes = figure.axes
    unit = next((metric.unit for metric in results.plan.metrics if metric.name == figure.metric), "")
    rows: list[tuple[Field, ...]] = []
    for levels, group in combinations(results, figure):
        for cell_flow in group:
            cell, measured = cell_flow.cell, results.repeated([cell_flow.cell], cell_flow.flow, figure.metric)
            value = measured.values.get(cell.repetition)
            rows.append((*levels, cell.repetition, cell.seed, value, unit, measured.missing, cell.id))
    return Rows(results.plan.rows_of(figure), (*axes, *DRAW_COLUMNS), tuple(rows))


def combinations(results: Results, output: Table | Figure | Answer) -> Iterator[tuple[tuple[str, ...], list[CellFlow]]]:
    """Each combination of levels of an output's axes, in their order ("-" first), and the cells that have it."""
    groups: dict[tuple[str, ...], list[CellFlow]] = {}
    for cell_flow in results.cell_flows(output):
        groups.setdefault(tuple(cell_flow.levels[axis] for axis in output.axes), []).append(cell_flow)
    for levels in in_level_order(results.plan, output.axes, groups):
        yield levels, groups[levels]


def _published(plan: Plan, selection: Selection, source: str, metric: str, group: Sequence[CellFlow]) -> float | None:
    values = {
        number.value
        for number in plan.expected
        if number.source == source
        and number.metric == metric
        and all(selection.has(cell_flow.cell, number.at, cell_flow.flow) for cell_flow in group)
    }
    return values.pop() if len(values) == 1 else None


SERIES_COLUMNS = ("path", "series", "unit", "t_s", "value")
EVENT_COLUMNS = ("near", "t_s", "event", "node", "link", "path", "type", "number", "bytes", "note")
BINNED = ("goodput_bit_s", "packets_s", "data_packets_s", "control_packets_s")
"""Binned series of a flow; throughput is binned by path."""
NO_SERIES = FlowSeries(goodput_bit_s=(), paths={}, samples={}, states={})


def series_rows(plan: Plan, outcomes: Mapping[str, CellOutcome], run: RunDir, figure: TimeSeries) -> Rows:
    """One row per value. Of sampled series only samples that differ from the one before (each value holds until the
    next) and the last one; of binned series the beginning of each bin.
    """
    rows: list[tuple[Field, ...]] = []
    low, high = (end / 1e9 for end in figure.window_ns) if figure.window_ns else (float("-inf"), float("inf"))
    several = len(figure.flows) > 1 or bool({*figure.flows} & {*plan.groups.values()})
    for cell, head in _cells(plan, outcomes, figure):
        curves_of = _reader(cell, run, figure)
        groups = groups_of(cell)
        flows = dict.fromkeys(flow for name in figure.flows for flow in groups.get(name, (name,)))
        for name, series in itertools.product(flows, figure.series):
            named = (*head, name) if several else head
            unit = SERIES[series]
            for path, points in curves_of(name, series):
                rows += [(*named, path, series, unit, t_s, float(v)) for t_s, v in points if low <= t_s <= high]
    flow = ("flow",) if several else ()
    return Rows(plan.rows_of(figure), ("cell_id", *_factors(plan), *flow, *SERIES_COLUMNS), tuple(rows))


WINDOW_COLUMNS = ("flow", "series", "unit", "t_s", "value")


def window_rows(plan: Plan, outcomes: Mapping[str, CellOutcome], run: RunDir) -> Rows:
    """windows.csv: a row for each number of each window of time of each COMPLETED cell that has [measure].

    t_s: the beginning of the window, from T0. flow: as in measurements.csv. An empty value: there was nothing to
    measure.
    """
    return Rows("windows", ("cell_id", *WINDOW_COLUMNS), _window_rows(plan, outcomes, run))


def _window_rows(plan: Plan, outcomes: Mapping[str, CellOutcome], run: RunDir) -> Iterator[tuple[Field, ...]]:
    for cell in plan.cells:
        name = cell.id
        outcome = outcomes.get(name)
        if not cell.measure or outcome is None or outcome.outcome is not Outcome.COMPLETED:
            continue
        windows = read_json(run.cell(name).windows, CellWindows)
        for each in windows.series:
            for number, value in enumerate(each.values):
                yield name, each.subject, each.series, each.unit, number * windows.window_s, value


def event_rows(plan: Plan, outcomes: Mapping[str, CellOutcome], run: RunDir, table: EventTable) -> Rows:
    """One row per packet (or event of the timeline) near one of the table's moments, sorted by time."""
    rows: list[tuple[Field, ...]] = []
    for cell, head in _cells(plan, outcomes, table):
        packets = read_json(run.cell(cell.id).exchange, Exchange)
        for row in packets.get(table.flow, ()):
            near = [name for name in table.around if -table.packets <= row.moments.get(name, 99) < table.packets]
            if near:
                rows.append((*head, " ".join(near), *(getattr(row, column) for column in EVENT_COLUMNS[1:])))
    return Rows(table.name, ("cell_id", *_factors(plan), *EVENT_COLUMNS), tuple(rows))


Curves = Iterable[tuple[str, Iterable[tuple[float, float]]]]
"""(path, points) of a flow and series."""


def _reader(cell: Cell, run: RunDir, figure: TimeSeries) -> Callable[[str, str], Curves]:
    """What gives the curves of a cell's flow and series."""
    if figure.windows:
        windows = read_json(run.cell(cell.id).windows, CellWindows) if cell.measure else CellWindows(1.0, [])
        values = {(each.subject, each.series): each.values for each in windows.series}

        def by_windows(name: str, series: str) -> Curves:
            found = enumerate(values.get((name, series), ()))
            yield "", [(number * windows.window_s, value) for number, value in found if value is not None]

        return by_windows
    series_of_cell = read_json(run.cell(cell.id).series, CellSeries)
    return lambda name, series: _curves(series_of_cell.flows.get(name, NO_SERIES), series, series_of_cell.bin_s)


def _factors(plan: Plan) -> list[str]:
    return [factor.name for factor in plan.factors]


def _cells(
    plan: Plan, outcomes: Mapping[str, CellOutcome], output: TimeSeries | EventTable
) -> Iterator[tuple[Cell, tuple[Field, ...]]]:
    """The cells shown, each with the first columns of its rows."""
    selection = Selection(plan)
    for cell in plan.cells:
        if cell.repetition or not selection.has(cell, output.where):
            continue
        name = cell.id  # a hash of the whole cell: made once
        outcome = outcomes.get(name)
        if outcome is not None and outcome.outcome is Outcome.COMPLETED:
            yield cell, (name, *(cell.factors[factor] for factor in _factors(plan)))


def _curves(flow: FlowSeries, series: str, bin_s: float) -> Iterator[tuple[str, Iterable[tuple[float, float]]]]:
    """(path, points) of every path that has the series; an empty path is the flow's."""
    if series in BINNED:
        yield "", _bins(getattr(flow, series), bin_s)
    elif series == "throughput_bit_s":
        yield from ((path, _bins(columns[series], bin_s)) for path, columns in flow.paths.items())
    else:
        yield from ((path, _changes(columns, series)) for path, columns in flow.samples.items() if series in columns)


def _bins(values: Sequence[float], bin_s: float) -> Iterator[tuple[float, float]]:
    return ((number * bin_s, value) for number, value in enumerate(values))


def _changes(columns: Sampled, series: str) -> Iterator[tuple[float, float]]:
    """The first value, those that differ from the one before, and the last."""
    values = columns[series]
    for number, (t_s, value) in enumerate(zip(columns["t_s"], values, strict=True)):
        changes = number in (0, len(values) - 1) or value != values[number - 1]
        if changes and t_s is not None and value is not None:
            yield t_s, value
