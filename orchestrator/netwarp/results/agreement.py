"""The same cells on two back ends: which numbers agree within what the instrument allows, and which do not.

A number is one metric of one flow at one combination of levels, as in compare.py. There the question is whether
anything changed; here it is whether two machines are as good as one, which "no significant change" does not answer. So
each number has a bound (tolerance.py), and the 95 % interval of the difference of the means is held against it:

agree           the interval lies within the bound (an equivalence test)
differ          the difference is beyond the bound by more than chance
unclear         neither: the interval reaches over the bound; more repetitions would tell
not comparable  one side has no such number: its cells did not complete, it was not asked for, or the clocks of two
                machines took it away; or it says something of a machine, such as CPU time

Where a number is there on one side in every repetition and on the other in none (but for the clocks), it differs.

The interval is Welch's (B. L. Welch, Biometrika 34, 1947), of independent draws. Where links lose packets at random and
both sides have equal seeds it is that of the pairs: netem draws a number a packet, so the n-th packet of a link is lost
on both, whatever it carries (measured: docs/agreement.md). Where nothing is random and the reference is one number, it
is that of the other side's repetitions. Beyond chance: p of a difference no larger than the bound; of random draws at
least what shuffling them could tell, so that a few equal draws prove nothing; in the places of one metric false
discoveries are held at 5 % (Y. Benjamini, Y. Hochberg, J. R. Statist. Soc. B 57, 1995).
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ..core.metrics.catalogue import METRICS
from ..core.types import Cell, Flow
from .compare import RATE, Key, Levels, Moved, combinations, measured_numbers, moved_verdicts, sending_s, units_of
from .paired_samples import Draws, draws_of
from .rows import Rows
from .run_results import RepeatedValue, Results
from .statistics import false_discoveries, student_t_95, student_t_p
from .tolerance import Circumstances, Tolerance, made_of, tolerance

Verdict = Literal["agree", "differ", "unclear", "not comparable"]
VERDICTS: tuple[Verdict, ...] = ("differ", "unclear", "agree", "not comparable")
EXACT_S = 1e-4
"""Only the virtual clock has a lateness below this."""
HEADER = (
    "flow", "metric", "unit", "verdict", "a", "b", "difference", "low", "high", "bound", "bound_of", "draws_a",
    "draws_b", "random",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Agreed:
    """One number on both sides: means (None: no value), the difference b - a with its 95 % interval (None: one draw on
    each side), the bound, and the parts of the bound.
    """

    levels: Levels
    flow: str
    metric: str
    unit: str
    verdict: Verdict
    a: float | None
    b: float | None
    draws: tuple[int, int]
    random: bool
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
        """(b - a) / |a|."""
        difference = self.difference
        return None if difference is None or not self.a else difference / abs(self.a)


@dataclass(frozen=True, slots=True)
class MetricAgreement:
    """One metric over all combinations. offset: mean of the relative differences, with its 95 % interval over the
    combinations (None below two); worst: the number that exceeds its bound most, measured in bounds.
    """

    metric: str
    unit: str
    counts: Mapping[Verdict, int]
    offset: float | None
    low: float | None
    high: float | None
    worst: Agreed | None


@dataclass(frozen=True, slots=True)
class Agreement:
    """The comparison of two runs of the same cells. numbers: in the order of A's plan. verdicts: claims that the two
    runs judge differently.
    """

    numbers: tuple[Agreed, ...]
    verdicts: tuple[Moved, ...]
    lateness_s: float

    @property
    def differs(self) -> bool:
        """True if any number differs."""
        return any(number.verdict == "differ" for number in self.numbers)

    def count(self, verdict: Verdict) -> int:
        """Numbers of that verdict."""
        return sum(number.verdict == verdict for number in self.numbers)

    def metrics(self) -> tuple[MetricAgreement, ...]:
        """By metric, those with differences first."""
        by_metric: dict[str, list[Agreed]] = {}
        for number in self.numbers:
            by_metric.setdefault(number.metric, []).append(number)
        made = [_metric(name, numbers) for name, numbers in by_metric.items()]
        return tuple(sorted(made, key=lambda number: (-number.counts["differ"], -number.counts["unclear"])))


def agree(a: Results, b: Results, lateness_s: float, unclocked: Collection[tuple[str, str, str]] = ()) -> Agreement:
    """Compare run B with run A, the reference, by levels. lateness_s: L of tolerance.py. unclocked: (cell id, flow,
    metric) of values that the clocks of two machines took away. Reads and writes no file.
    """
    cells_a, cells_b = combinations(a), combinations(b)
    units = units_of(a) | units_of(b)
    places = measured_numbers(a, cells_a) | measured_numbers(b, cells_b)
    at: dict[tuple[Key, str], Circumstances] = {}
    numbers = []
    for (key, flow, metric), levels in places.items():
        left, right = (a.repeated(cells_a.get(key, ()), flow, metric), b.repeated(cells_b.get(key, ()), flow, metric))
        if not left.values and not right.values:
            continue
        if (key, flow) not in at:
            at[key, flow] = _circumstances(a, b, cells_a.get(key, ()), cells_b.get(key, ()), flow, lateness_s)
        names = made_of(metric, at[key, flow].own)
        beyond_clocks = bool(unclocked) and any(
            (cell.id, flow, name) in unclocked for cell in (*left.cells, *right.cells) for name in names
        )
        numbers.append(_agreed(levels, flow, metric, units[metric], left, right, at[key, flow], beyond_clocks))
    return Agreement(_beyond_chance(numbers), moved_verdicts(a, b), lateness_s)


def agreement_rows(agreement: Agreement) -> Rows:
    """agreement.csv: one row per number; a column for every factor, "-" where it does not apply."""
    factors = list(dict.fromkeys(factor for number in agreement.numbers for factor, _ in number.levels))
    rows = []
    for number in agreement.numbers:
        levels = dict(number.levels)
        place = (levels.get(factor, "-") for factor in factors)
        rows.append(
            (*place, number.flow, number.metric, number.unit, number.verdict, number.a, number.b, number.difference,
             number.low, number.high, number.bound, number.bound_of, *number.draws, "yes" if number.random else "no")
        )  # fmt: skip
    return Rows("agreement", (*factors, *HEADER), tuple(rows))


def _circumstances(
    a: Results, b: Results, cells_a: Sequence[Cell], cells_b: Sequence[Cell], flow: str, lateness_s: float
) -> Circumstances:
    cell = (*cells_a, *cells_b)[0]
    mine = [each for each in cell.flows if each.name == flow] or list(cell.flows)
    steps = [event.at_ns for event in cell.timeline]

    def largest(metric: str) -> float:
        places = (a.repeated(cells_a, flow, metric), b.repeated(cells_b, flow, metric))
        return max((value for place in places for value in place.values.values()), default=0.0)

    return Circumstances(
        lateness_s=lateness_s,
        fault_s=(max(steps) - min(steps)) / 1e9 if steps else 0.0,
        silence_s=largest("outage_s"),
        window_s=sending_s(a, b, (cells_a, cells_b), flow),
        packets=largest("packets"),
        acks=largest("ack_packets") or largest("packets"),
        mtu_bytes=max(link.mtu_bytes for link in cell.links),
        sample_s=max((_sample_s(each) for each in mine), default=0.0),
        own=cell.metrics,
    )


def _sample_s(flow: Flow) -> float:
    interval = flow.sender_options.get("sample_interval_ns")
    return interval / 1e9 if isinstance(interval, int) else 0.0


def _agreed(
    levels: Levels, flow: str, metric: str, unit: str, a: RepeatedValue, b: RepeatedValue, at: Circumstances,
    beyond_clocks: bool,
) -> Agreed:  # fmt: skip
    draws = (len(a.values), len(b.values))
    random = any(cell.random for cell in (*a.cells, *b.cells))
    x, y = list(a.values.values()), list(b.values.values())
    of_machine = any(name in METRICS and METRICS[name].clock == "none" for name in made_of(metric, at.own))
    if not x or not y or of_machine:
        nothing = b if x else a
        all_there = len(x or y) == len((a if x else b).cells) and not beyond_clocks and not of_machine
        verdict: Verdict = "differ" if nothing.measured and all_there else "not comparable"
        means = [statistics.fmean(values) if values else None for values in (x, y)]
        return Agreed(levels, flow, metric, unit, verdict, means[0], means[1], draws, random)
    drawn = draws_of(a, b)
    x, y = drawn.x, drawn.y
    size = max(abs(statistics.fmean(x)), abs(statistics.fmean(y)))
    within = tolerance(metric, unit, size, at, _spread(x, y) if random else None)
    number = Agreed(
        levels, flow, metric, unit, "unclear", statistics.fmean(x), statistics.fmean(y), (len(x), len(y)), random,
        bound=within.bound, bound_of=within.why,
    )  # fmt: skip
    return _judged(number, drawn, within, at)


def _spread(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Standard deviation between the reference's seeds; if it has one draw, between the other side's."""
    return next((statistics.stdev(values) for values in (x, y) if len(values) > 1), None)


def _judged(number: Agreed, drawn: Draws, within: Tolerance, at: Circumstances) -> Agreed:
    x, y = drawn.x, drawn.y
    if len(x) > 1 and len(y) > 1:
        gap, variance, degrees = drawn.gap()
    elif max(len(x), len(y)) > 1 and not number.random:  # one number, against the other side's repetitions
        many = x if len(x) > 1 else y
        gap, variance = statistics.fmean(y) - statistics.fmean(x), statistics.variance(many) / len(many)
        degrees = len(many) - 1
    else:
        return _single(number, within, exact=at.lateness_s < EXACT_S)
    half = student_t_95(degrees) * math.sqrt(variance)
    verdict: Verdict = "agree" if abs(gap) + half <= within.bound else "unclear"
    p = _p_beyond(abs(gap) - within.bound, variance, degrees)
    if p is not None and number.random:
        p = max(p, drawn.least_p)
    return dataclasses.replace(number, verdict=verdict, low=gap - half, high=gap + half, p=p)


def _single(number: Agreed, within: Tolerance, *, exact: bool) -> Agreed:
    """The verdict with one draw on a side. That is enough for `agree` if nothing is random; for `differ` only if both
    clocks are virtual, since one draw on the wall clock does not show how far it varies.
    """
    if number.random or number.difference is None:
        return number
    if abs(number.difference) <= within.bound:
        return dataclasses.replace(number, verdict="agree")
    return dataclasses.replace(number, verdict="differ" if exact else "unclear")


def _p_beyond(excess: float, variance: float, degrees: int) -> float | None:
    """One-sided p-value of a difference no larger than the bound; None if the difference is not beyond it."""
    if excess <= 0:
        return None
    return student_t_p(excess / math.sqrt(variance), degrees) / 2 if variance else 0.0


def _beyond_chance(numbers: Sequence[Agreed]) -> tuple[Agreed, ...]:
    families: dict[str, list[Agreed]] = {}
    for number in numbers:
        if number.low is not None:
            families.setdefault(number.metric, []).append(number)
    beyond = set()
    for tested in families.values():
        # those within their bounds are tests too: their p is at least a half
        rejected = false_discoveries([1.0 if number.p is None else number.p for number in tested], RATE)
        beyond |= {id(number) for number, no in zip(tested, rejected, strict=True) if no}
    return tuple(
        dataclasses.replace(number, verdict="differ") if id(number) in beyond else number for number in numbers
    )


def _metric(name: str, numbers: Sequence[Agreed]) -> MetricAgreement:
    counts: dict[Verdict, int] = {verdict: sum(number.verdict == verdict for number in numbers) for verdict in VERDICTS}
    offsets = [number.relative for number in numbers if number.relative is not None]
    mean = statistics.fmean(offsets) if offsets else None
    half = None
    if len(offsets) > 1:
        half = student_t_95(len(offsets) - 1) * statistics.stdev(offsets) / math.sqrt(len(offsets))
    low, high = (None, None) if mean is None or half is None else (mean - half, mean + half)
    out = [number for number in numbers if number.bound]
    worst = max(out, key=lambda number: abs(number.difference or 0.0) / (number.bound or 1.0), default=None)
    return MetricAgreement(name, numbers[0].unit, counts, mean, low, high, worst)
