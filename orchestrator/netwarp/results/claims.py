"""Judges claims by the measurements: a verdict for each, the number it depends on, and the claimed value.

Each kind is one statistic and the interval it must lie in:

greater     a/b - 1 > tolerance                      increasing  relative step of a, or of a/b, > tolerance
less        a/b - 1 < -tolerance                     decreasing  relative step < -tolerance
equal       a/b - 1 within +- tolerance              constant    (max - min) / mean of a over the levels <= tolerance
gain        sum(a) / sum(b) - 1 = expected +- tol.   value       a = expected +- tolerance
mean_gain   mean of a/b - 1 = expected +- tol.       pooled_gain mean of all a / mean of all b - 1 = expected +- tol.
mean_greater mean of a/b - 1 > tolerance             difference  a - b = expected +- tolerance
mean        mean of other claims' numbers = expected +- tolerance
varies      (max - min) / mean of a over the levels > tolerance
elasticity  ln(a at the last level / at the first) / ln(last level / first) = expected +- tolerance
every       a = expected +- tolerance in each repetition: one that is not decides, however many are

a and b are means over the repetitions that both have, and intervals are the jackknife's (of constant and varies those
of the pairs of levels that reach farthest: in each repetition noise alone makes a largest and a smallest). Each
comparison (a level, a pair, a step) is judged over its own repetitions, and the worst comparison decides the claim. A
mean over the worst case of each repetition would let +20 % in one and -20 % in the next cancel.

A lead that is less than its bound, and a gain that is less than the expected one, has the claimed direction all the
same if it lies between 0 and there: "weaker, same direction".
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence

from ..core.numbers import fixed, plain
from ..core.outputs import ANY_LEVEL, FLOW, Claim, Levels, Verdict
from ..core.schedule_levels import UNDISTURBED
from ..core.types import Cell
from ..core.units import counted_of
from .contrasts import Contrast, contrasts, mean_of
from .run_results import RepeatedValue, Results
from .single_draw_bounds import Bounds, Kind, Spread, bounds, spreads

NO_QUOTIENT = "a number to divide by, or to take the logarithm of, is 0"
SLACK = 1e-12
"""Tolerance of a closed bound: numbers that are equal on paper may differ in their last bit."""
ABSOLUTE = ("value", "every", "difference", "elasticity")
"""Kinds whose number is in the metric's own unit (an elasticity has none); those of all other kinds are relative."""
WEAKER: Verdict = "weaker, same direction"
_WORST: tuple[Verdict, ...] = ("does not hold", "inconclusive", WEAKER, "holds")
LEADS = ("greater", "less", "mean_greater", "increasing", "decreasing")
"""Kinds of a direction, whose bound is the least that the source calls so."""
SIZES = ("gain", "mean_gain", "pooled_gain", "mean", "difference")
"""Kinds of a direction and a size."""
SWEEPS = 3
"""Over numbers that move within their rounding: the best end of one depends on the others."""


@dataclasses.dataclass(frozen=True, slots=True)
class Judged:
    """A claim with its verdict. `measured`: the number of its worst comparison; None: no number.

    low, high: the 95 % confidence interval of `measured`, if it has one.
    """

    claim: Claim
    verdict: Verdict
    measured: float | None
    expected: str
    unit: str
    reason: str
    low: float | None = None
    high: float | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class _Interval:
    low: float
    high: float
    open: bool

    def holds(self, value: float) -> bool:
        """True if the value lies in it."""
        if self.open:
            return self.low < value < self.high
        return self.low - SLACK <= value <= self.high + SLACK


def judge(results: Results, claims: Sequence[Claim] | None = None) -> tuple[Judged, ...]:
    """Every claim of the plan, or each of these, in order."""
    units = {metric.name: metric.unit for metric in results.plan.metrics}
    return tuple(_judge(claim, results, units) for claim in (results.plan.claims if claims is None else claims))


def _judge(claim: Claim, results: Results, units: Mapping[str, str]) -> Judged:
    unit = units.get(claim.metric, "") if claim.kind in ABSOLUTE and claim.kind != "elasticity" else "ratio"
    expected = expectation(claim)
    if not claim.tested:
        return Judged(claim, "not tested" if claim.kind == "later" else "not testable here", None, "", "", claim.reason)
    if claim.clock == "wall" and results.any_completed and not results.on_wall_clock:
        return Judged(claim, "not testable here", None, "", "", claim.reason)
    if claim.kind == "every" and claim.of_schedules:
        return _every_schedule(claim, results, expected, unit)
    compared = _compared(claim, results)
    places = [place for comparison in compared for place in comparison.places]
    absent = [place.missing or "a cell of it is not in this run (--where, --only)" for place in places if place.failed]
    if absent:
        return Judged(claim, "not tested", None, expected, unit, _first(absent))
    if claim.kind == "every":
        return _every(claim, places, expected, unit)
    empty = [place.missing for place in places if place.missing]
    if empty:
        return Judged(claim, "inconclusive", None, expected, unit, _first(empty))
    decided = [_decide(claim, each, results, expected, unit) for each in compared]
    return min(decided, key=lambda each: (_WORST.index(each.verdict), _margin(claim, each.measured)))


def _every(claim: Claim, places: Sequence[RepeatedValue], expected: str, unit: str) -> Judged:
    """Judges each draw separately: a mean over draws would call one miss in ten inconclusive."""
    interval = _interval(claim)
    draws = [(value, place, number) for place in places for number, value in sorted(place.values.items())]
    missed = [draw for draw in draws if not interval.holds(draw[0])]
    if missed:
        worst, place, number = min(missed, key=lambda draw: _margin(claim, draw[0]))
        cell = next((cell.id for cell in place.cells if cell.repetition == number), "")
        are = "is" if len(missed) == 1 else "are"
        why = f"{counted_of(len(missed), len(draws), 'value')} {are} outside, farthest in {cell}"
        return Judged(claim, "does not hold", worst, expected, unit, why)
    nearest = min((value for value, _, _ in draws), key=lambda value: _margin(claim, value), default=None)
    if empty := [place.missing for place in places if place.missing]:
        return Judged(claim, "inconclusive", nearest, expected, unit, _first(empty))
    if any(place.random and len(place.values) == 1 for place in places):
        why = _one_draw(places)
        return Judged(claim, "inconclusive", nearest, expected, unit, why)
    return Judged(
        claim,
        "holds",
        nearest,
        expected,
        unit,
        "the one value is inside" if len(draws) == 1 else f"all {len(draws)} values are inside",
    )


def _one_draw(places: Sequence[RepeatedValue]) -> str:
    """The reason of a verdict for which one repetition is too few."""
    of = "on the wall clock" if any(place.on_wall_clock for place in places) else "of cells that are random"
    return f"one repetition {of}; --repetitions 5 or more decides"


def _every_schedule(claim: Claim, results: Results, expected: str, unit: str) -> Judged:
    """Judges each cell that fits, of whatever levels. It is a claim about these runs: no seed stands for others."""
    places = _schedules(claim, results)
    known = [(value, results.name(place.cells[0])) for place in places for value in place.values.values()]
    missed = [pair for pair in known if not _interval(claim).holds(pair[0])]
    if missed:
        worst, name = min(missed, key=lambda pair: _margin(claim, pair[0]))
        are = "is" if len(missed) == 1 else "are"
        why = f"{counted_of(len(missed), len(places), 'schedule')} {are} outside, farthest {name}"
        return Judged(claim, "does not hold", worst, expected, unit, why)
    failed = [place.missing for place in places if place.failed] or _not_in_run(claim, results)
    if failed:
        return Judged(claim, "not tested", None, expected, unit, _first(failed))
    nearest = min((value for value, _ in known), key=lambda value: _margin(claim, value), default=None)
    if empty := [place.missing for place in places if place.missing]:
        return Judged(claim, "inconclusive", nearest, expected, unit, _first(empty))
    return Judged(claim, "holds", nearest, expected, unit, f"all {len(places)} schedules are inside")


def _schedules(claim: Claim, results: Results) -> list[RepeatedValue]:
    return [
        results.repeated([cell], flow, claim.metric)
        for selector in claim.a
        for flow in selector.get(FLOW, (claim.flow,))
        for cell in results.cells(selector)
    ]


def _not_in_run(claim: Claim, results: Results) -> list[str]:
    """The reasons why a run has only a part of the schedules that a claim is about."""
    reasons: list[str] = []
    for number, selector in enumerate(claim.a):
        cells = results.cells(selector)
        if not cells:
            reasons.append("a cell of it is not in this run (--where, --only)")
            continue
        varied = [factor for factor, levels in selector.items() if ANY_LEVEL in levels]
        there = {tuple(level for name, level in cell.factors.items() if name not in varied) for cell in cells}
        most = claim.combinations[number] if claim.combinations else len(there)
        if len(there) < most:
            absent = most - len(there)
            are = "is" if absent == 1 else "are"
            text = counted_of(absent, most, "combination")
            reasons.append(f"{text} of levels {are} not in this run (--where, --only)")
        elif varied and all(cell.factors[name] in (UNDISTURBED, "-") for cell in cells for name in varied):
            only = f"of {' and '.join(varied)} only {UNDISTURBED} is in this run"
            reasons.append(f"no cell of it touches a packet: {only}")
    return reasons


def violations(claim: Claim, results: Results) -> list[tuple[Cell, float]]:
    """The cells in which a claim about every schedule does not hold, in the order of the plan, each with its value."""
    interval = _interval(claim)
    return [
        (place.cells[0], value)
        for place in _schedules(claim, results)
        for value in place.values.values()
        if not interval.holds(value)
    ]


def _compared(claim: Claim, results: Results) -> list[Contrast]:
    """The comparisons of a claim; for kind `mean`, one over the comparisons of the claims it averages."""
    if claim.kind == "mean":
        parts = [part for other in _claims_of(claim, results) for part in _compared(other, results)]
        return [mean_of(parts)]
    return contrasts(
        claim.kind,
        [_series(claim, selector, claim.metric, results) for selector in claim.a],
        [_series(claim, selector, claim.metric_b or claim.metric, results) for selector in claim.b],
        claim.levels,
    )


def _claims_of(claim: Claim, results: Results) -> list[Claim]:
    """The claims that a claim of kind `mean` averages, under its condition."""
    others = {other.id: other for other in results.plan.claims if other.condition == claim.condition}
    return [others[name] for name in claim.of]


def _measured_claims(claim: Claim, results: Results) -> list[Claim]:
    """The claims whose cells a claim compares: itself, or those that it averages."""
    return [part for other in _claims_of(claim, results) for part in _measured_claims(other, results)] or [claim]


def _margin(claim: Claim, measured: float | None) -> float:
    """Distance from the bounds of the claimed interval: negative outside, lowest if there is no number."""
    interval = _interval(claim)
    return -math.inf if measured is None else min(measured - interval.low, interval.high - measured)


def _decide(claim: Claim, comparison: Contrast, results: Results, expected: str, unit: str) -> Judged:
    """Judges one comparison over its repetitions. A single draw decides if no other draw that was seen would change the
    verdict.
    """
    try:
        estimated = comparison.estimate()
    except ZeroDivisionError:
        return Judged(claim, "inconclusive", None, expected, unit, NO_QUOTIENT)
    if estimated.spread in ("deterministic", "equal"):
        verdict = _of_interval(claim, estimated.mean, estimated.mean)
        why = f"deterministic, n = {estimated.n}" if estimated.spread == "deterministic" else estimated.said
        return Judged(claim, verdict, estimated.mean, expected, unit, why)
    if estimated.low is not None and estimated.high is not None:
        if reason := comparison.unusable(estimated):
            means = comparison.of_means()
            return Judged(claim, "inconclusive", means, expected, unit, f"not usable ({reason}); of the plain means")
        low, high = max(estimated.low, comparison.floor), estimated.high
        estimated = dataclasses.replace(estimated, low=low)
        why = f"95 % interval {_range(claim, low, high)}, n = {estimated.n}"
    else:
        moved = _moved(claim, comparison, results)
        if moved is None:
            why = _one_draw(comparison.places)
            return Judged(claim, "inconclusive", estimated.mean, expected, unit, why)
        low, high = moved.low, moved.high
        why = f"one draw, no interval of its own: {_range(claim, low, high)} {_borrowed(moved)}"
    return Judged(
        claim,
        _of_interval(claim, low, high),
        estimated.mean,
        expected,
        unit,
        why,
        estimated.low,
        estimated.high,
    )


def _range(claim: Claim, low: float, high: float) -> str:
    """From low to high; what is relative in percent, as the report shows it."""
    if claim.kind in ABSOLUTE:
        return f"{plain(low, 6)} to {plain(high, 6)}"
    return f"{plain(100 * low, 4)} % to {plain(100 * high, 4)} %"


def _borrowed(moved: Bounds) -> str:
    """The origin of the bounds of one draw: another's spread, and whose."""
    if moved.widest is None:
        return "with nothing moved"
    spread = moved.widest
    return (
        f"if every drawn number were {fixed(100 * spread.relative, 2)}% off, a spread borrowed from {spread.widest}"
        f" (the widest of {spread.combinations} repeated of its kind; rates, delays and times may differ)"
    )


def _moved(claim: Claim, comparison: Contrast, results: Results) -> Bounds | None:
    """Bounds of one draw; None: no cell of its kind was repeated, or its spread would move a number to where the
    claim's statistic has no value.
    """
    parts = _measured_claims(claim, results)
    known: dict[Kind, Spread] = {}
    for part in parts:
        for flow, metric in itertools.product(flows_of(part), {part.metric, part.metric_b or part.metric}):
            for kind, spread in spreads(results, flow, metric).items():
                known[kind] = known[kind] | spread if kind in known else spread
    try:
        return bounds(comparison, known)
    except ZeroDivisionError:
        return None


def _of_interval(claim: Claim, low: float, high: float) -> Verdict:
    """The verdict on a number that lies between low and high."""
    inside, outside = _compare(_interval(claim), low, high)
    if inside:
        return "holds"
    weaker = _weaker(claim)
    if weaker is not None and weaker.low < low and high < weaker.high:
        return WEAKER
    return "does not hold" if outside else "inconclusive"


def _weaker(claim: Claim) -> _Interval | None:
    """The numbers that have the direction that a paper claims, but not its size; None: no paper claims a direction."""
    if claim.claim_class == "own" or claim.kind not in (*LEADS, *SIZES):
        return None
    bound = claim.tolerance if claim.kind in LEADS else max(0.0, abs(claim.expected or 0.0) - claim.tolerance)
    down = claim.kind in ("less", "decreasing") or (claim.expected or 0.0) < 0
    # of a lead the bound itself is no lead yet
    edge = math.nextafter(bound, math.inf) if claim.kind in LEADS else bound
    return _Interval(-edge, 0.0, open=True) if down else _Interval(0.0, edge, open=True)


def can_hold(claim: Claim, results: Results) -> bool:
    """True if a claim holds by numbers that are rounded, or cut, to those that are printed; each comparison by itself.

    Of numbers that a source prints: one of each.
    """
    return all(_reaches(_interval(claim), comparison) for comparison in _compared(claim, results))


def _reaches(interval: _Interval, comparison: Contrast) -> bool:
    """True if the statistic lies in the interval for some numbers that print as these do."""
    try:
        low, high = (_extreme(comparison, sign) for sign in (-1, 1))
    except (IndexError, ZeroDivisionError):  # a number is missing, or may be 0 where it is divided by
        return True
    if interval.open:
        return interval.low < high and low < interval.high
    return interval.low - SLACK <= high and low <= interval.high + SLACK


def _extreme(comparison: Contrast, sign: int) -> float:
    """The highest (sign 1) or the lowest (-1) value of a statistic by numbers that print as these do."""
    printed = comparison.rows()[0]
    row = list(printed)
    for _ in range(SWEEPS):
        for number, place in enumerate(comparison.places):
            ends = (printed[number] - place.digit / 2, printed[number] + place.digit)  # rounded up, or cut
            moved = {end: sign * comparison.statistic([*row[:number], end, *row[number + 1 :]]) for end in ends}
            row[number] = max(moved, key=moved.__getitem__)
    return comparison.statistic(row)


def _compare(interval: _Interval, low: float, high: float) -> tuple[bool, bool]:
    """(inside, outside): the confidence interval lies completely inside the claimed interval, or completely outside."""
    inside = interval.holds(low) and interval.holds(high)
    if interval.open:
        return inside, high <= interval.low or low >= interval.high
    return inside, high < interval.low - SLACK or low > interval.high + SLACK


def flows_of(claim: Claim) -> tuple[str, ...]:
    """Every flow that a claim is about."""
    chosen = [selector.get(FLOW, (claim.flow,)) for selector in (*claim.a, *claim.b)]
    return tuple(dict.fromkeys(claim.levels if claim.over == FLOW else itertools.chain(*chosen)))


def _series(claim: Claim, selector: Levels, metric: str, results: Results) -> list[RepeatedValue]:
    levels: Sequence[Levels] = (
        [{**selector, claim.over: (level,)} for level in claim.levels] if claim.over else [selector]
    )
    return [results.repeated(results.cells(where), where.get(FLOW, (claim.flow,))[0], metric) for where in levels]


def _first(reasons: Sequence[str]) -> str:
    return reasons[0] + (f"; and {len(reasons) - 1} more" if len(reasons) > 1 else "")


def _interval(claim: Claim) -> _Interval:
    expected, tolerance = claim.expected or 0.0, claim.tolerance
    match claim.kind:
        case "greater" | "mean_greater" | "varies" | "increasing":
            return _Interval(tolerance, math.inf, open=True)
        case "less" | "decreasing":
            return _Interval(-math.inf, -tolerance, open=True)
        case "constant":
            return _Interval(-math.inf, tolerance, open=False)
        case _:
            return _Interval(expected - tolerance, expected + tolerance, open=False)


def expectation(claim: Claim) -> str:
    """The claimed value of the statistic, as claims.csv shows it: a number if one is claimed, otherwise its bound."""
    match claim.kind:
        case "greater" | "mean_greater" | "varies" | "increasing":
            return f"> {claim.tolerance!r}" if claim.tolerance else "> 0"
        case "less" | "decreasing":
            return f"< {-claim.tolerance!r}" if claim.tolerance else "< 0"
        case "constant":
            return f"<= {claim.tolerance!r}"
        case "equal":
            return "0"
        case "later" | "untestable":
            return ""
        case _:
            return repr(claim.expected)
