"""Compares two runs: which numbers changed, and which of the changes exceed chance.

A number is one metric of one flow at one combination of levels; the repetitions of both runs are compared:

same          every repetition has the same value in both runs
unresolved    the values differ in every repetition by less than the clock of the cells resolves (tolerance.py)
changed       nothing random in it and the values differ; or they are random and differ by more than chance; or one of
              the runs had nothing to measure there, in any repetition
within noise  random, and the difference may be chance
unclear       random, and too few draws to decide (below two in one of the runs)
only in A/B   the other run has no such combination or metric, or its cells did not complete

More than chance: a t-test of the difference. Runs whose repetitions have equal seeds meet equal losses and are compared
pair by pair, others by Welch's test (B. L. Welch, Biometrika 34, 1947). Many numbers are tested at once, so the level
applies to the false discovery rate (Y. Benjamini, Y. Hochberg, J. R. Statist. Soc. B 57, 1995).
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from ..core.types import Cell
from .claims import judge
from .rows import NOT_RUN, Rows
from .run_results import RepeatedValue, Results
from .statistics import false_discoveries, student_t_p
from .tolerance import resolution

Status = Literal["same", "unresolved", "changed", "within noise", "unclear", "only in A", "only in B"]
RATE = 0.05
"""Permitted share of false discoveries among the numbers called changed."""
HEADER = ("flow", "metric", "unit", "status", "a", "b", "relative", "p", "draws_a", "draws_b")
T = TypeVar("T")
Levels = tuple[tuple[str, str], ...]
"""(factor, level) pairs of a combination, without the factors that do not apply."""
Key = frozenset[tuple[str, str]]
"""The same without an order: two specs may have their factors in different ones."""


@dataclass(frozen=True, slots=True)
class Change:
    """One number in both runs: means over the repetitions (None: none), and p of the difference where it was tested.

    levels: those of the combination. relative: (b - a) / |a|, None where a is 0 or a mean is missing.
    """

    levels: Levels
    flow: str
    metric: str
    unit: str
    status: Status
    a: float | None
    b: float | None
    draws: tuple[int, int]
    p: float | None = None

    @property
    def relative(self) -> float | None:
        """(b - a) / |a|."""
        return None if self.a is None or self.b is None or self.a == 0 else (self.b - self.a) / abs(self.a)


@dataclass(frozen=True, slots=True)
class Moved:
    """Something stated in words that differs between the runs: a claim's verdict, a cell's outcome."""

    name: str
    a: str
    b: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs.

    numbers: every metric of every combination in the order of A's plan, then what only B has."""

    numbers: tuple[Change, ...]
    verdicts: tuple[Moved, ...]
    outcomes: tuple[Moved, ...]

    @property
    def differs(self) -> bool:
        """True if anything changed beyond noise."""
        return bool(self.verdicts or self.outcomes) or any(change.status == "changed" for change in self.numbers)


def compare(a: Results, b: Results, lateness_s: float = 0.0) -> Comparison:
    """Compare run B with run A by levels; cells need not have equal ids. Reads and writes no file.

    lateness_s: how late a start, a fault or a packet may be on the clock of these cells; 0: every difference counts.
    """
    cells_a, cells_b = combinations(a), combinations(b)
    units = units_of(a) | units_of(b)
    places = measured_numbers(a, cells_a) | measured_numbers(b, cells_b)
    numbers = []
    sending: dict[tuple[Key, str], float] = {}
    for (key, flow, metric), levels in places.items():
        cells = cells_a.get(key, ()), cells_b.get(key, ())
        left, right = a.repeated(cells[0], flow, metric), b.repeated(cells[1], flow, metric)
        if left.values or right.values:
            if (key, flow) not in sending:
                sending[key, flow] = sending_s(a, b, cells, flow)
            bound = resolution(
                metric, units[metric], max(map(abs, left.values.values()), default=0.0), sending[key, flow], lateness_s
            )
            numbers.append(_change(levels, flow, metric, units[metric], left, right, bound))
    return Comparison(_beyond_chance(numbers), moved_verdicts(a, b), _outcomes(a, b, cells_a, cells_b))


def comparison_rows(comparison: Comparison) -> Rows:
    """comparison.csv: one row per number; a column for every factor, "-" where it does not apply."""
    factors = list(dict.fromkeys(factor for change in comparison.numbers for factor, _ in change.levels))
    rows = []
    for change in comparison.numbers:
        levels = dict(change.levels)
        place = (levels.get(factor, "-") for factor in factors)
        rows.append(
            (
                *place,
                change.flow,
                change.metric,
                change.unit,
                change.status,
                change.a,
                change.b,
                change.relative,
                change.p,
                *change.draws,
            )
        )
    return Rows("comparison", (*factors, *HEADER), tuple(rows))


def combinations(results: Results) -> dict[Key, list[Cell]]:
    """The cells of each combination of levels, i.e. its repetitions."""
    by_levels: dict[Key, list[Cell]] = {}
    for cell in results.plan.cells:
        by_levels.setdefault(frozenset(levels_of(cell)), []).append(cell)
    return by_levels


def levels_of(cell: Cell) -> Levels:
    """Its levels in the order of the spec, without the factors that do not apply."""
    return tuple((factor, level) for factor, level in cell.factors.items() if level != "-")


def measured_numbers(
    results: Results, combinations: Mapping[Key, Sequence[Cell]]
) -> dict[tuple[Key, str, str], Levels]:
    """Every number of a run, with its levels in the order of the spec."""
    return {
        (key, row.flow, row.metric): levels_of(cell)
        for key, cells in combinations.items()
        for cell in cells
        for row in results.by_cell[cell.id]
    }


def units_of(results: Results) -> dict[str, str]:
    """Metric -> unit, those of the spec's own metrics included."""
    own = {metric.name: metric.unit for metric in results.plan.metrics}
    measured = {row.metric: row.unit for cell in results.by_cell.values() for row in cell}
    return {name: unit or own.get(name, "") for name, unit in measured.items()}


def _change(
    levels: Levels, flow: str, metric: str, unit: str, a: RepeatedValue, b: RepeatedValue, bound: float
) -> Change:
    draws = (len(a.values), len(b.values))
    means = [math.fsum(place.values.values()) / len(place.values) if place.values else None for place in (a, b)]
    status: Status
    p = None
    if not a.values or not b.values:
        other = b if a.values else a
        status = "changed" if other.measured else "only in A" if a.values else "only in B"
    elif _alike(a, b):
        status = "same"
    elif _farthest(a, b) <= bound:
        status = "unresolved"
    elif not (a.random or b.random):
        status = "changed"
    else:
        p = _p_value(a, b)
        status = "unclear" if p is None else "within noise"
    return Change(levels, flow, metric, unit, status, means[0], means[1], draws, p)


def _alike(a: RepeatedValue, b: RepeatedValue) -> bool:
    """The same value in every repetition, or one value throughout, however many repetitions there are."""
    return a.values == b.values or len({*a.values.values(), *b.values.values()}) == 1


def _farthest(a: RepeatedValue, b: RepeatedValue) -> float:
    """The largest difference between the runs: of one repetition, or of any two where they have different ones."""
    if a.values.keys() == b.values.keys():
        return max(abs(b.values[number] - value) for number, value in a.values.items())
    return max(abs(y - x) for x in a.values.values() for y in b.values.values())


def sending_s(a: Results, b: Results, cells: tuple[Sequence[Cell], Sequence[Cell]], flow: str) -> float:
    """The time for which a flow sends in the cells of a combination: until its bytes have arrived, otherwise until its
    stop.
    """
    places = [run.repeated(mine, flow, "completion_time_s") for run, mine in zip((a, b), cells, strict=True)]
    complete_s = max((value for place in places for value in place.values.values()), default=0.0)
    cell = (*cells[0], *cells[1])[0]
    mine = [each for each in cell.flows if each.name == flow] or list(cell.flows)
    ends = [(cell.duration_ns if each.stop_ns is None else each.stop_ns) - each.start_ns for each in mine]
    return complete_s or max(ends, default=cell.duration_ns) / 1e9


def _p_value(a: RepeatedValue, b: RepeatedValue) -> float | None:
    """Two-sided p-value of no difference; None with fewer than two draws in either run."""
    if min(len(a.values), len(b.values)) < 2:
        return None
    if _seeds(a) == _seeds(b):
        gaps = [b.values[number] - a.values[number] for number in a.values]
        return _p_of(statistics.fmean(gaps), statistics.variance(gaps) / len(gaps), len(gaps) - 1)
    return _p_of(*welch(list(a.values.values()), list(b.values.values())))


def welch(x: Sequence[float], y: Sequence[float]) -> tuple[float, float, int]:
    """Welch's test for the means of two independent samples of at least two values: difference (y - x), its variance,
    degrees of freedom.
    """
    parts = [statistics.variance(values) / len(values) for values in (x, y)]
    spread = sum(parts)
    weights = sum(part * part / (len(values) - 1) for part, values in zip(parts, (x, y), strict=True))
    degrees = math.floor(spread * spread / weights) if weights else min(len(x), len(y)) - 1
    return statistics.fmean(y) - statistics.fmean(x), spread, max(degrees, 1)


def _seeds(place: RepeatedValue) -> dict[int, int]:
    """Repetition -> seed, for repetitions that have a value."""
    return {cell.repetition: cell.seed for cell in place.cells if cell.repetition in place.values}


def _p_of(difference: float, variance: float, degrees: int) -> float:
    if variance == 0:
        return 1.0 if difference == 0 else 0.0
    return student_t_p(difference / math.sqrt(variance), degrees)


def _beyond_chance(numbers: Sequence[Change]) -> tuple[Change, ...]:
    tested = [change.p for change in numbers if change.p is not None]
    rejected = iter(false_discoveries(tested, RATE))
    return tuple(
        dataclasses.replace(change, status="changed") if change.p is not None and next(rejected) else change
        for change in numbers
    )


def moved_verdicts(a: Results, b: Results) -> tuple[Moved, ...]:
    """Claims that both runs tested and judge differently."""
    said = (
        {judged.claim.name: str(judged.verdict) for judged in judge(run) if judged.verdict != "not tested"}
        for run in (a, b)
    )
    return tuple(Moved(*judged) for judged in _differing(*said))


def _outcomes(
    a: Results, b: Results, cells_a: Mapping[Key, Sequence[Cell]], cells_b: Mapping[Key, Sequence[Cell]]
) -> tuple[Moved, ...]:
    said: list[dict[tuple[Key, int], str]] = []
    names: dict[tuple[Key, int], str] = {}
    for results, combinations in ((a, cells_a), (b, cells_b)):
        said.append({})
        for key, cells in combinations.items():
            for cell in cells:
                outcome = results.outcomes.get(cell.id)
                levels = " ".join(f"{factor}={level}" for factor, level in levels_of(cell)) or cell.experiment
                names[key, cell.repetition] = f"{levels} repetition {cell.repetition}"
                said[-1][key, cell.repetition] = NOT_RUN if outcome is None else str(outcome.outcome)
    return tuple(Moved(names[key], before, after) for key, before, after in _differing(*said))


def _differing(a: Mapping[T, str], b: Mapping[T, str]) -> list[tuple[T, str, str]]:
    """The entries that both have, with different values."""
    return [(name, a[name], b[name]) for name in a if name in b and a[name] != b[name]]
