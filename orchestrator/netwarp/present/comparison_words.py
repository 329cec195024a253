"""Words about two runs: how many numbers agree or changed, the mean offsets, the claims judged differently.

For the terminal (cli/agree.py) and the page (pages/comparison.py); `results` has judged the numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..core.metrics.catalogue import HEADLINE
from ..core.numbers import DASH, fixed, given, percent, readable, with_unit
from ..core.units import counted
from ..results.compared_numbers import OF_AGREEMENT, ComparedNumber, Comparison, Levels, MetricAgreement

NAMED = 6
TINY = 1e-9
"""Smaller relative differences come from another order of summation."""


def sentences(compared: Comparison, names: Sequence[str]) -> list[str]:
    """The summary: counts by verdict, mean offsets, metrics that differ, claims with another verdict."""
    a, b = names
    counts = compared.counts
    combinations = counted(len({number.levels for number in compared.numbers}), "combination")
    texts = [f"{counted(counts.total(), 'number')} at {combinations} of levels compared: "]
    if not compared.bounded:
        texts[0] += ", ".join(f"{fixed(count, 0)} {verdict}" for verdict, count in counts.most_common()) + "."
        if not compared.differs:
            texts.append("Nothing changed beyond noise.")
        return texts + _verdicts(compared, a, b)
    differ, unclear, agree, missing = (fixed(counts[verdict], 0) for verdict in OF_AGREEMENT)
    texts[0] += (
        f"{agree} agree within their bounds, {differ} differ, {unclear} are unclear, {missing} cannot be compared."
    )
    metrics = {metric.metric: metric for metric in compared.metrics()}
    texts += [_offset(metrics[name], a, b) for name in HEADLINE if name in metrics and metrics[name].offset is not None]
    differing = [metric for metric in metrics.values() if metric.counts["differ"]]
    if differing:
        listed = ", ".join(f"{metric.metric} ({metric.counts['differ']})" for metric in differing[:NAMED])
        more = f" and {len(differing) - NAMED} more" if len(differing) > NAMED else ""
        texts.append(f"Metrics with differences beyond their bounds that chance does not explain: {listed}{more}.")
    else:
        texts.append("No number differs from the other by more than its bound and chance explain.")
    if counts["unclear"]:
        texts.append(
            "A number is unclear if the interval of its difference crosses the bound, or if it is random and has too "
            "few repetitions: more --repetitions decide it."
        )
    return texts + _verdicts(compared, a, b)


def _verdicts(compared: Comparison, a: str, b: str) -> list[str]:
    listed = "; ".join(f"{claim.name} {claim.a} on {a}, {claim.b} on {b}" for claim in compared.verdicts[:NAMED])
    return [f"Claims whose verdicts differ: {listed}."] if listed else []


def _offset(metric: MetricAgreement, a: str, b: str) -> str:
    judged = sum(metric.counts[verdict] for verdict in ("agree", "differ", "unclear"))
    text = f"{metric.metric}: {metric.counts['agree']} of {judged} agree"
    if metric.offset is not None:
        if abs(metric.offset) < TINY:
            text += f"; the means on {b} and {a} are equal"
        else:
            size = percent(abs(metric.offset), 2)
            text += f"; on average {size} {'more' if metric.offset > 0 else 'less'} on {b} than on {a}"
        if metric.low is not None and metric.high is not None:
            text += f" (95 %: {gap(metric.low)} to {gap(metric.high)})"
    if metric.worst is not None and metric.worst.relative is not None:
        levels = levels_words(metric.worst.levels)
        text += f"; largest difference {gap(metric.worst.relative)}" + (f" at {levels}" if levels else "")
    return f"{text}."


def gap(ratio: float) -> str:
    """A relative difference: "+0.12 %"."""
    return percent(0.0 if abs(ratio) < TINY else ratio, 2, signed=True)


def amount(value: float | None, unit: str, *, signed: bool = False) -> str:
    """A number with its unit; times below a second in ms."""
    if value is None:
        return DASH
    sign = "+" if signed and value > 0 else ""
    if unit == "s" and 0 < abs(value) < 1:
        return f"{sign}{readable(value * 1e3, 3)} ms"
    return sign + with_unit(value, unit)


def levels_words(levels: Levels) -> str:
    """The levels of a combination, without their factors."""
    return " ".join(level for _, level in levels)


def gap_words(metric: MetricAgreement) -> str:
    """The mean of the relative differences and its interval."""
    if metric.offset is None:
        return DASH
    if metric.low is None or metric.high is None:
        return gap(metric.offset)
    half = metric.high - metric.offset
    return f"{gap(metric.offset)} \u00b1 {given(100 * half if half > TINY else 0, 2)}"


def interval_words(number: ComparedNumber) -> str:
    """The difference and its interval."""
    apart = amount(number.difference, number.unit, signed=True)
    if number.low is None or number.high is None:
        return apart
    return f"{apart} [{amount(number.low, number.unit, signed=True)}, {amount(number.high, number.unit, signed=True)}]"
