"""Claims against measurements: for each a verdict, the number it hangs on, and what was claimed.

Each kind is one statistic (worst case over its comparisons) and the interval it must lie in:

greater     min(a/b - 1) > tolerance                 increasing  min(relative step of a, or of a/b) > tolerance
less        max(a/b - 1) < -tolerance                decreasing  max(relative step) < -tolerance
equal       a/b - 1 furthest from 0, within +- tol.  constant    (max - min) / mean of a over the levels <= tolerance
gain        sum(a) / sum(b) - 1 = expected +- tol.   value       a furthest from expected, within +- tolerance
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ..study import Claim, Levels
from .results import Place, Results
from .statistics import estimate

Verdict = Literal["holds", "does not hold", "inconclusive", "not tested"]
SLACK = 1e-12
"""Of a closed bound: numbers that are equal on paper may differ in their last bit."""
Series = list[float]


@dataclass(frozen=True, slots=True)
class Judged:
    """A claim and what became of it. `measured`: the statistic (mean over repetitions), None where there is none."""

    claim: Claim
    verdict: Verdict
    measured: float | None
    expected: str
    unit: str
    reason: str


@dataclass(frozen=True, slots=True)
class _Interval:
    low: float
    high: float
    open: bool

    def holds(self, value: float) -> bool:
        """Whether the value lies in it."""
        if self.open:
            return self.low < value < self.high
        return self.low - SLACK <= value <= self.high + SLACK


def judge(results: Results) -> tuple[Judged, ...]:
    """Every claim of the plan, in order."""
    units = {metric.name: metric.unit for metric in results.plan.metrics}
    return tuple(_judge(claim, results, units) for claim in results.plan.claims)


def _judge(claim: Claim, results: Results, units: Mapping[str, str]) -> Judged:
    unit = units.get(claim.metric, "") if claim.kind == "value" else "ratio"
    expected = expectation(claim)
    if claim.kind == "later":
        return Judged(claim, "not tested", None, "", "", claim.reason)
    sides = [[_series(claim, selector, results) for selector in side] for side in (claim.a, claim.b)]
    places = [place for side in sides for series in side for place in series]
    absent = [place.missing or "a cell of it is not in this run (--where, --only)" for place in places if place.failed]
    if absent:
        return Judged(claim, "not tested", None, expected, unit, _first(absent))
    empty = [place.missing for place in places if place.missing]
    if empty:
        return Judged(claim, "inconclusive", None, expected, unit, _first(empty))
    repetitions = set.intersection(*(set(place.values) for place in places))
    values: list[float] = []
    try:
        for number in sorted(repetitions):
            a, b = ([[place.values[number] for place in series] for series in side] for side in sides)
            values.append(_STATISTICS[claim.kind](claim, a, b))
    except ZeroDivisionError:
        return Judged(claim, "inconclusive", None, expected, unit, "a number to divide by is 0")
    return _decide(claim, values, any(place.random for place in places), expected, unit)


def _decide(claim: Claim, values: Sequence[float], random: bool, expected: str, unit: str) -> Judged:
    wanted = _interval(claim)
    found = estimate(values, random=random)
    if found.spread == "deterministic":
        verdict: Verdict = "holds" if wanted.holds(found.mean) else "does not hold"
        return Judged(claim, verdict, found.mean, expected, unit, f"deterministic, n = {found.n}")
    if found.low is None or found.high is None:
        why = "one repetition of cells that are random; --repetitions 5 or more decides"
        return Judged(claim, "inconclusive", found.mean, expected, unit, why)
    why = f"95 % interval {found.low:.6g} to {found.high:.6g}, n = {found.n}"
    inside, outside = _compare(wanted, found.low, found.high)
    return Judged(
        claim, "holds" if inside else "does not hold" if outside else "inconclusive", found.mean, expected, unit, why
    )


def _compare(wanted: _Interval, low: float, high: float) -> tuple[bool, bool]:
    """Whether the confidence interval lies wholly in the wanted one, and wholly outside of it."""
    inside = wanted.holds(low) and wanted.holds(high)
    if wanted.open:
        return inside, high <= wanted.low or low >= wanted.high
    return inside, high < wanted.low - SLACK or low > wanted.high + SLACK


def _series(claim: Claim, selector: Levels, results: Results) -> list[Place]:
    levels: Sequence[Levels] = (
        [{**selector, claim.over: (level,)} for level in claim.levels] if claim.over else [selector]
    )
    return [results.place(results.cells(where), claim.flow, claim.metric) for where in levels]


def _first(reasons: Sequence[str]) -> str:
    return reasons[0] + (f"; and {len(reasons) - 1} more" if len(reasons) > 1 else "")


def _ratios(a: Sequence[Series], b: Sequence[Series]) -> list[Series]:
    return [[x / y for x, y in zip(one, other, strict=True)] for one in a for other in b]


def _gains(a: Sequence[Series], b: Sequence[Series]) -> Series:
    return [ratio - 1 for series in _ratios(a, b) for ratio in series]


def _steps(a: Sequence[Series], b: Sequence[Series]) -> Series:
    return [(y - x) / abs(x) for series in (_ratios(a, b) if b else a) for x, y in itertools.pairwise(series)]


def _sum_gain(claim: Claim, a: Sequence[Series], b: Sequence[Series]) -> float:
    gains = [math.fsum(one) / math.fsum(other) - 1 for one in a for other in b]
    return max(gains, key=lambda gain: abs(gain - (claim.expected or 0.0)))


def _variation(a: Sequence[Series], b: Sequence[Series]) -> float:
    return max(
        (max(series) - min(series)) / (math.fsum(series) / len(series)) for series in (_ratios(a, b) if b else a)
    )


_STATISTICS: dict[str, Callable[[Claim, Sequence[Series], Sequence[Series]], float]] = {
    "greater": lambda _, a, b: min(_gains(a, b)),
    "less": lambda _, a, b: max(_gains(a, b)),
    "equal": lambda _, a, b: max(_gains(a, b), key=abs),
    "gain": _sum_gain,
    "value": lambda claim, a, _: max(
        (value for series in a for value in series), key=lambda value: abs(value - (claim.expected or 0.0))
    ),
    "constant": lambda _, a, b: _variation(a, b),
    "increasing": lambda _, a, b: min(_steps(a, b)),
    "decreasing": lambda _, a, b: max(_steps(a, b)),
}


def _interval(claim: Claim) -> _Interval:
    expected, tolerance = claim.expected or 0.0, claim.tolerance
    match claim.kind:
        case "greater" | "increasing":
            return _Interval(tolerance, math.inf, open=True)
        case "less" | "decreasing":
            return _Interval(-math.inf, -tolerance, open=True)
        case "constant":
            return _Interval(-math.inf, tolerance, open=False)
        case _:
            return _Interval(expected - tolerance, expected + tolerance, open=False)


def expectation(claim: Claim) -> str:
    """What is claimed of the statistic, as claims.csv has it: a number where one is claimed, else its bound."""
    match claim.kind:
        case "greater" | "increasing":
            return f"> {claim.tolerance!r}" if claim.tolerance else "> 0"
        case "less" | "decreasing":
            return f"< {-claim.tolerance!r}" if claim.tolerance else "< 0"
        case "constant":
            return f"<= {claim.tolerance!r}"
        case "equal":
            return "0"
        case "later":
            return ""
        case _:
            return repr(claim.expected)
