"""The numbers of two runs held against each other, place by place.

A number is one metric of one flow at one combination of levels. Both runs' repetitions of it are compared, in one of
two ways. `compare` asks whether anything changed; `agree` asks whether one machine is as good as another, which "no
significant change" does not answer, so that each number has a bound there (tolerance.py).

compare, of runs on one kind of clock:
same            every repetition has the same value in both runs
unresolved      the values differ in every repetition by less than the clock of the cells resolves (tolerance.py)
changed         nothing random in it and the values differ; or they are random and differ by more than chance; or one of
                the runs had nothing to measure there, in any repetition
within noise    random, and the difference may be chance
unclear         random, and too few draws to decide (below two in one of the runs)
only in A/B     the other run has no such combination or metric, or its cells did not complete

agree, of two back ends:
agree           the 95 % interval of the difference of the means lies within the bound (an equivalence test)
differ          the difference is beyond the bound by more than chance; or the number is there on one side in every
                repetition and on the other in none (but for the clocks)
unclear         neither: the interval reaches over the bound; more repetitions would tell
not comparable  one side has no such number: its cells did not complete, it was not asked for, or the clocks of two
                machines took it away; or it says something of a machine, such as CPU time

The interval is Welch's (B. L. Welch, Biometrika 34, 1947), of independent draws, or that of the pairs where repetitions
with equal seeds drew the same. On one kind of clock they drew the same in everything; on two where links lose packets
at random: netem draws a number a packet, so the n-th packet of a link is lost on both, whatever it carries (measured:
docs/agreement.md). Where nothing is random and one side is one number, it is that of the other side's repetitions.

Many numbers are tested at once, so the level of 5 % applies to the false discovery rate (Y. Benjamini, Y. Hochberg,
J. R. Statist. Soc. B 57, 1995): of all numbers of a run, or of those of one metric where each has its bound. There a
test of random draws is given at least the p that shuffling them could have, so that a few equal draws prove nothing.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import statistics
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from ..core.metrics.catalogue import METRICS
from ..core.types import Cell
from .claims import judge
from .rows import NOT_RUN, Rows
from .run_results import RepeatedValue, Results
from .statistics import Draws, false_discoveries, student_t_95, student_t_p
from .tolerance import Circumstances, made_of, resolution, tolerance

Verdict = Literal[
    "same", "unresolved", "within noise", "changed", "only in A", "only in B",
    "agree", "differ", "not comparable", "unclear",
]  # fmt: skip
OF_AGREEMENT: tuple[Verdict, ...] = ("differ", "unclear", "agree", "not comparable")
RATE = 0.05
"""Permitted share of false discoveries among the numbers said to have changed, or to differ."""
COLUMNS = ("flow", "metric", "unit", "status", "a", "b", "relative", "p", "draws_a", "draws_b")
AGREEMENT_COLUMNS = (
    *("flow", "metric", "unit", "verdict", "a", "b", "difference", "low", "high", "bound", "bound_of"),
    *("draws_a", "draws_b", "random"),
)
EXACT_S = 1e-4
"""Only the virtual clock has a lateness below this."""
Levels = tuple[tuple[str, str], ...]
"""(factor, level) pairs of a combination, without the factors that do not apply."""
Key = frozenset[tuple[str, str]]
"""The same without an order: two specs may have their factors in different ones."""
MappedLevels = Mapping[str, Mapping[str, str]]
"""Factor -> level of A -> level of B."""


@dataclass(frozen=True, slots=True)
class ComparedNumber:
    """One number in both runs: means over the repetitions (None: no value) and how many those are.

    low, high: the 95 % interval of the difference (None: one draw in each run, or not computed). bound, bound_of: how
    far the two may be apart, in the metric's unit, and the parts of it. p: of the difference, where it was tested.
    """

    levels: Levels
    flow: str
    metric: str
    unit: str
    verdict: Verdict
    a: float | None
    b: float | None
    draws: tuple[int, int]
    random: bool = False
    low: float | None = None
    high: float | None = None
    bound: float | None = None
    bound_of: str = ""
    p: float | None = None

    @property
    def difference(self) -> float | None:
        """b - a."""
        return None if self.a is None or self.b is None else self.b - self.a

    @property
    def relative(self) -> float | None:
        """(b - a) / |a|; None where a is 0."""
        difference = self.difference
        return None if difference is None or not self.a else difference / abs(self.a)


@dataclass(frozen=True, slots=True)
class Moved:
    """Something stated in words that differs between the runs: a claim's verdict, a cell's outcome."""

    name: str
    a: str
    b: str


@dataclass(frozen=True, slots=True)
class MovedOutcome(Moved):
    """A cell that ended otherwise. levels, repetition: the cell's."""

    levels: Levels
    repetition: int


@dataclass(frozen=True, slots=True)
class MetricAgreement:
    """One metric over all combinations. offset: mean of the relative differences, with its 95 % interval over the
    combinations (None below two); worst: the number that exceeds its bound most.
    """

    metric: str
    unit: str
    counts: Mapping[Verdict, int]
    offset: float | None
    low: float | None
    high: float | None
    worst: ComparedNumber | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """The numbers of two runs: every metric of every combination in the order of A's plan, then what only B has.

    verdicts, outcomes: of claims and cells that both runs have, where they differ. lateness_s: how late a start, a
    fault or a packet may be on the less exact of their clocks. bounded: True if `agree` held the numbers against
    bounds.
    """

    numbers: tuple[ComparedNumber, ...]
    verdicts: tuple[Moved, ...]
    outcomes: tuple[MovedOutcome, ...]
    lateness_s: float
    bounded: bool

    @property
    def differs(self) -> bool:
        """True if anything changed beyond noise; where numbers have bounds, if any differs."""
        if self.bounded:
            return bool(self.counts["differ"])
        return bool(self.verdicts or self.outcomes or self.counts["changed"])

    @property
    def empty(self) -> bool:
        """True if nothing was compared: no number has a value in both runs, and nothing else differs."""
        return not self.differs and all(number.difference is None for number in self.numbers)

    @property
    def counts(self) -> Counter[Verdict]:
        """How many numbers have each verdict."""
        return Counter(number.verdict for number in self.numbers)

    def of(self, verdict: Verdict) -> list[ComparedNumber]:
        """The numbers of that verdict, those farthest apart first: in bounds, or relative to A."""
        chosen = [number for number in self.numbers if number.verdict == verdict]
        if self.bounded:
            return sorted(chosen, key=lambda number: -abs(number.difference or 0.0) / (number.bound or 1.0))
        return sorted(chosen, key=lambda number: -math.inf if number.relative is None else -abs(number.relative))

    def metrics(self) -> tuple[MetricAgreement, ...]:
        """By metric, those with differences first."""
        by_metric: dict[str, list[ComparedNumber]] = {}
        for number in self.numbers:
            by_metric.setdefault(number.metric, []).append(number)
        made = [_of_metric(name, numbers) for name, numbers in by_metric.items()]
        return tuple(sorted(made, key=lambda metric: (-metric.counts["differ"], -metric.counts["unclear"])))

    def rows(self) -> Rows:
        """comparison.csv or agreement.csv: one row per number; a column for every factor, "-" where it does not
        apply.
        """
        factors = list(dict.fromkeys(factor for number in self.numbers for factor, _ in number.levels))
        rows = []
        for each in self.numbers:
            levels = dict(each.levels)
            place = (*(levels.get(factor, "-") for factor in factors), each.flow, each.metric, each.unit, each.verdict)
            if self.bounded:
                said = (each.difference, each.low, each.high, each.bound, each.bound_of, *each.draws)
                rows.append((*place, each.a, each.b, *said, "yes" if each.random else "no"))
            else:
                rows.append((*place, each.a, each.b, each.relative, each.p, *each.draws))
        name, columns = ("agreement", AGREEMENT_COLUMNS) if self.bounded else ("comparison", COLUMNS)
        return Rows(name, (*factors, *columns), tuple(rows))


def compare(a: Results, b: Results, lateness_s: float = 0.0, mapped: MappedLevels = MappingProxyType({})) -> Comparison:
    """What changed from run A to run B, by levels; cells need not have equal ids. Reads and writes no file.

    lateness_s: how late a start, a fault or a packet may be on the clock of these cells; 0: every difference counts.
    mapped: cells of A with one of these levels of a factor are held against those of B with its counterpart, and no
    others are compared; both may be of one run. Claims, which are of whole runs, are not compared then.
    """
    numbers = [_changed(pair) for pair in _pairs(a, b, lateness_s, mapped)]
    outcomes = _moved_outcomes(a, b, mapped)
    verdicts = () if mapped else moved_verdicts(a, b)
    return Comparison(_beyond_chance(numbers, "changed"), verdicts, outcomes, lateness_s, bounded=False)


def _in_a(cell: Cell, mapped: MappedLevels) -> Key | None:
    """The levels of a cell of A; None: it is not compared."""
    there = all(cell.factors.get(factor) in levels for factor, levels in mapped.items())
    return frozenset(levels_of(cell)) if there else None


def _in_b(cell: Cell, mapped: MappedLevels) -> Key | None:
    """The levels of the cell of A with which a cell of B is compared; None: there is none."""
    levels = dict(levels_of(cell))
    for factor, pairs in mapped.items():
        names = [one for one, other in pairs.items() if other == cell.factors.get(factor)]
        if not names:
            return None
        levels[factor] = names[0]
    return frozenset(levels.items())


def agree(a: Results, b: Results, lateness_s: float, unclocked: Collection[tuple[str, str, str]] = ()) -> Comparison:
    """Whether the numbers of run B agree with those of run A, the reference. lateness_s: L of tolerance.py. unclocked:
    (cell id, flow, metric) of values that the clocks of two machines took away. Reads and writes no file.
    """
    numbers = [_agreeing(pair, unclocked) for pair in _pairs(a, b, lateness_s)]
    return Comparison(_beyond_chance(numbers, "differ"), moved_verdicts(a, b), (), lateness_s, bounded=True)


@dataclass(frozen=True, slots=True)
class _Pair:
    """One number of both runs with all its draws, and the circumstances of its flow."""

    levels: Levels
    flow: str
    metric: str
    unit: str
    a: RepeatedValue
    b: RepeatedValue
    at: Circumstances

    def judged(self, verdict: Verdict, x: Collection[float], y: Collection[float], **more: Any) -> ComparedNumber:
        """The number, with the draws that count."""
        a, b = (math.fsum(values) / len(values) if values else None for values in (x, y))
        draws = (len(x), len(y))
        return ComparedNumber(self.levels, self.flow, self.metric, self.unit, verdict, a, b, draws, self.random, **more)

    @property
    def random(self) -> bool:
        """True if the plan draws anything."""
        return any(cell.random for cell in (*self.a.cells, *self.b.cells))


def _pairs(a: Results, b: Results, lateness_s: float, mapped: MappedLevels = MappingProxyType({})) -> Iterator[_Pair]:
    """Every number that a run has, with that of the other."""
    cells_a, cells_b = (
        _combined(run.plan.cells, functools.partial(key_of, mapped=mapped)) for run, key_of in ((a, _in_a), (b, _in_b))
    )
    units = _units(a) | _units(b)
    places = _places(a, cells_a)
    for place, levels in _places(b, cells_b).items():
        places.setdefault(place, levels)
    at: dict[tuple[Key, str], Circumstances] = {}
    for (key, flow, metric), levels in places.items():
        mine, others = cells_a.get(key, []), cells_b.get(key, [])
        left, right = a.repeated(mine, flow, metric), b.repeated(others, flow, metric)
        if left.values or right.values:
            if (key, flow) not in at:
                at[key, flow] = _circumstances(((a, mine), (b, others)), flow, lateness_s)
            yield _Pair(levels, flow, metric, units[metric], left, right, at[key, flow])


def _circumstances(
    sides: tuple[tuple[Results, list[Cell]], tuple[Results, list[Cell]]], flow: str, lateness_s: float
) -> Circumstances:
    cell = next(cell for _, cells in sides for cell in cells)
    mine = [each for each in cell.flows if each.name == flow] or list(cell.flows)
    steps = [event.at_ns for event in cell.timeline]
    ends = [(cell.duration_ns if each.stop_ns is None else each.stop_ns) - each.start_ns for each in mine]

    def largest(metric: str) -> float:
        draws = (run.repeated(cells, flow, metric).values.values() for run, cells in sides)
        return max((value for values in draws for value in values), default=0.0)

    intervals = (each.sender_options.get("sample_interval_ns") for each in mine)
    return Circumstances(
        lateness_s=lateness_s,
        fault_s=(max(steps) - min(steps)) / 1e9 if steps else 0.0,
        silence_s=largest("outage_s"),
        # until its bytes have arrived, otherwise until its stop
        window_s=largest("completion_time_s") or max(ends, default=cell.duration_ns) / 1e9,
        packets=largest("packets"),
        acks=largest("ack_packets") or largest("packets"),
        mtu_bytes=max(link.mtu_bytes for link in cell.links),
        sample_s=max((each / 1e9 for each in intervals if isinstance(each, int)), default=0.0),
        own=cell.metrics,
    )


def _changed(pair: _Pair) -> ComparedNumber:
    """A number of two runs on one kind of clock."""
    a, b = pair.a, pair.b
    x, y = a.values.values(), b.values.values()
    if not x or not y:
        there: Verdict = "only in A" if x else "only in B"
        return pair.judged("changed" if (b if x else a).measured else there, x, y)
    if a.values == b.values or len({*x, *y}) == 1:
        return pair.judged("same", x, y)
    if a.values.keys() == b.values.keys():
        farthest = max(abs(b.values[number] - value) for number, value in a.values.items())
    else:
        farthest = max(abs(second - first) for first in x for second in y)
    size = max(map(abs, x))
    if farthest <= resolution(pair.metric, pair.unit, size, pair.at.window_s, pair.at.lateness_s):
        return pair.judged("unresolved", x, y)
    if not (a.random or b.random):
        return pair.judged("changed", x, y)
    if min(len(x), len(y)) < 2:
        return pair.judged("unclear", x, y)
    gap, variance, degrees = draws_of(a, b, losses_alone=False).gap()
    p = student_t_p(gap / math.sqrt(variance), degrees) if variance else float(gap == 0)
    return pair.judged("within noise", x, y, p=p)


def _agreeing(pair: _Pair, unclocked: Collection[tuple[str, str, str]]) -> ComparedNumber:
    """A number of two back ends, held against its bound."""
    a, b, at = pair.a, pair.b, pair.at
    names = made_of(pair.metric, at.own)
    of_machine = any(name in METRICS and METRICS[name].clock == "none" for name in names)
    if not a.values or not b.values or of_machine:
        there, missing = (a, b) if a.values else (b, a)
        beyond_clocks = bool(unclocked) and any(
            (cell.id, pair.flow, name) in unclocked for cell in (*a.cells, *b.cells) for name in names
        )
        whole = len(there.values) == len(there.cells) and not beyond_clocks and not of_machine
        verdict: Verdict = "differ" if missing.measured and whole else "not comparable"
        return pair.judged(verdict, a.values.values(), b.values.values())
    drawn = draws_of(a, b, losses_alone=True)
    x, y = drawn.x, drawn.y
    size = max(abs(statistics.fmean(x)), abs(statistics.fmean(y)))
    # between the reference's seeds; if it has one draw, between the other side's
    spread = next((statistics.stdev(values) for values in (x, y) if len(values) > 1), None) if pair.random else None
    within = tolerance(pair.metric, pair.unit, size, at, spread)
    number = pair.judged("unclear", x, y, bound=within.bound, bound_of=within.why)
    if len(x) > 1 and len(y) > 1:
        gap, variance, degrees = drawn.gap()
    elif max(len(x), len(y)) > 1 and not pair.random:  # one number, against the other side's repetitions
        many = x if len(x) > 1 else y
        gap, variance = statistics.fmean(y) - statistics.fmean(x), statistics.variance(many) / len(many)
        degrees = len(many) - 1
    else:
        return _single(number, exact=at.lateness_s < EXACT_S)
    half, excess = student_t_95(degrees) * math.sqrt(variance), abs(gap) - within.bound
    if excess <= 0:
        p = 1.0  # a test too, of a difference within its bound
    else:
        p = student_t_p(excess / math.sqrt(variance), degrees) / 2 if variance else 0.0
        p = max(p, drawn.least_p) if pair.random else p
    verdict = "agree" if abs(gap) + half <= within.bound else "unclear"
    return dataclasses.replace(number, verdict=verdict, low=gap - half, high=gap + half, p=p)


def _single(number: ComparedNumber, *, exact: bool) -> ComparedNumber:
    """The verdict with one draw on a side. That is enough for `agree` if nothing is random; for `differ` only if both
    clocks are virtual, since one draw on the wall clock does not show how far it varies.
    """
    if number.random or number.difference is None or number.bound is None:
        return number
    if abs(number.difference) <= number.bound:
        return dataclasses.replace(number, verdict="agree")
    return dataclasses.replace(number, verdict="differ" if exact else "unclear")


def _beyond_chance(numbers: Sequence[ComparedNumber], verdict: Verdict) -> tuple[ComparedNumber, ...]:
    """The numbers, with this verdict where the test of it rejects chance: among all of them, or (`differ`) among those
    of one metric.
    """
    families: dict[str, list[int]] = {}
    for place, number in enumerate(numbers):
        if number.p is not None:
            families.setdefault(number.metric if verdict == "differ" else "", []).append(place)
    judged = list(numbers)
    for places in families.values():
        rejected = false_discoveries([numbers[place].p or 0.0 for place in places], RATE)
        for place in itertools.compress(places, rejected):
            judged[place] = dataclasses.replace(numbers[place], verdict=verdict)
    return tuple(judged)


def draws_of(a: RepeatedValue, b: RepeatedValue, *, losses_alone: bool) -> Draws:
    """The draws of one number, in pairs if the seeds are equal. losses_alone: of two kinds of clock, on which equal
    seeds draw equal losses and nothing else. A repetition that one of the runs lacks leaves the pairs.
    """
    seeds_a, seeds_b = ({cell.repetition: cell.seed for cell in place.cells} for place in (a, b))
    both = [number for number in a.values if number in b.values and seeds_a[number] == seeds_b[number]]
    lossy = any(
        shape.loss_ratio or shape.burst_loss is not None
        for cell in a.cells[:1]
        for link in cell.links
        for shape in (link.forward, link.backward)
    )
    least = max(len(a.values), len(b.values)) - losses_alone
    if (lossy or not losses_alone) and len(both) > 1 and len(both) >= least:
        return Draws([a.values[number] for number in both], [b.values[number] for number in both], True)
    return Draws(list(a.values.values()), list(b.values.values()), False)


def _combined(cells: Sequence[Cell], key_of: Callable[[Cell], Key | None]) -> dict[Key, list[Cell]]:
    """The cells of each combination of levels, i.e. its repetitions."""
    by_levels: dict[Key, list[Cell]] = {}
    for cell in cells:
        if (key := key_of(cell)) is not None:
            by_levels.setdefault(key, []).append(cell)
    return by_levels


def levels_of(cell: Cell) -> Levels:
    """Its levels in the order of the spec, without the factors that do not apply."""
    return tuple((factor, level) for factor, level in cell.factors.items() if level != "-")


def _places(results: Results, combinations: Mapping[Key, Sequence[Cell]]) -> dict[tuple[Key, str, str], Levels]:
    """Every number of a run, with its levels in the order of the spec."""
    return {
        (key, row.flow, row.metric): levels_of(cell)
        for key, cells in combinations.items()
        for cell in cells
        for row in results.by_cell[cell.id]
    }


def _units(results: Results) -> dict[str, str]:
    """Metric -> unit, those of the spec's own metrics included."""
    own = {metric.name: metric.unit for metric in results.plan.metrics}
    return {name: unit or own.get(name, "") for name, unit in results.units.items()}


def moved_verdicts(a: Results, b: Results) -> tuple[Moved, ...]:
    """Claims that both runs tested and judge differently."""
    said = (
        {judged.claim.name: str(judged.verdict) for judged in judge(run) if judged.verdict != "not tested"}
        for run in (a, b)
    )
    return _differing(*said)


def _moved_outcomes(a: Results, b: Results, mapped: MappedLevels) -> tuple[MovedOutcome, ...]:
    """Cells of equal levels and repetition that ended differently, named as A's spec orders their levels."""
    ends = {key: end for key, (_, end) in _ends(b, functools.partial(_in_b, mapped=mapped)).items()}
    return tuple(
        MovedOutcome(
            f"{' '.join(f'{factor}={level}' for factor, level in levels_of(cell)) or cell.experiment} "
            f"repetition {cell.repetition}",
            end, ends[key], levels_of(cell), cell.repetition,
        )
        for key, (cell, end) in _ends(a, functools.partial(_in_a, mapped=mapped)).items()
        if ends.get(key, end) != end
    )  # fmt: skip


def _ends(results: Results, key_of: Callable[[Cell], Key | None]) -> dict[tuple[Key, int], tuple[Cell, str]]:
    """By levels and repetition: a cell, and its outcome."""
    ends = ((cell, key_of(cell), results.outcomes.get(cell.id)) for cell in results.plan.cells)
    return {
        (key, cell.repetition): (cell, NOT_RUN if end is None else str(end.outcome))
        for cell, key, end in ends
        if key is not None
    }


def _differing(a: Mapping[str, str], b: Mapping[str, str]) -> tuple[Moved, ...]:
    """The entries that both have, with different values."""
    return tuple(Moved(name, a[name], b[name]) for name in a if name in b and a[name] != b[name])


def _of_metric(name: str, numbers: Sequence[ComparedNumber]) -> MetricAgreement:
    offsets = [number.relative for number in numbers if number.relative is not None]
    mean = statistics.fmean(offsets) if offsets else None
    low = high = None
    if mean is not None and len(offsets) > 1:
        half = student_t_95(len(offsets) - 1) * statistics.stdev(offsets) / math.sqrt(len(offsets))
        low, high = mean - half, mean + half
    worst = max(
        (number for number in numbers if number.bound),
        key=lambda number: abs(number.difference or 0.0) / (number.bound or 1.0),
        default=None,
    )
    counts = Counter(number.verdict for number in numbers)
    return MetricAgreement(name, numbers[0].unit, counts, mean, low, high, worst)
