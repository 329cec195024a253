"""Claims against measurements: for each a verdict, the number it hangs on, and what was claimed.

Each kind is one statistic and the interval it must lie in:

greater     a/b - 1 > tolerance                      increasing  relative step of a, or of a/b, > tolerance
less        a/b - 1 < -tolerance                     decreasing  relative step < -tolerance
equal       a/b - 1 within +- tolerance              constant    (max - min) / mean of a over the levels <= tolerance
gain        sum(a) / sum(b) - 1 = expected +- tol.   value       a = expected +- tolerance

Each comparison (a level, a pair, a step) is judged over its own repetitions, and the worst of them is the claim's: a
mean over the worst case of each repetition would let +20 % in one and -20 % in the next cancel.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ..study import Claim, Levels
from .comparisons import Comparison, comparisons
from .results import Place, Results
from .statistics import estimate

Verdict = Literal["holds", "does not hold", "inconclusive", "not tested"]
SLACK = 1e-12
"""Of a closed bound: numbers that are equal on paper may differ in their last bit."""
_WORST: tuple[Verdict, ...] = ("does not hold", "inconclusive", "holds")


@dataclass(frozen=True, slots=True)
class Judged:
    """A claim and what became of it. `measured`: of its worst comparison, mean over repetitions; None: none."""

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
    decided = [_decide(claim, one, expected, unit) for one in comparisons(claim.kind, *sides)]
    return min(decided, key=lambda one: (_WORST.index(one.verdict), _margin(claim, one.measured)))


def _margin(claim: Claim, measured: float | None) -> float:
    """How far inside the wanted interval; negative outside, and least where there is no number."""
    wanted = _interval(claim)
    return -math.inf if measured is None else min(measured - wanted.low, wanted.high - measured)


def _decide(claim: Claim, comparison: Comparison, expected: str, unit: str) -> Judged:
    """One comparison over its repetitions."""
    try:
        found = estimate(comparison.values(), random=comparison.random)
    except ZeroDivisionError:
        return Judged(claim, "inconclusive", None, expected, unit, "a number to divide by is 0")
    wanted = _interval(claim)
    if found.spread in ("deterministic", "equal"):
        verdict: Verdict = "holds" if wanted.holds(found.mean) else "does not hold"
        why = f"deterministic, n = {found.n}" if found.spread == "deterministic" else found.said
        return Judged(claim, verdict, found.mean, expected, unit, why)
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
