"""Sentences about the agreement of two runs: the numbers that agree, those that differ, and the mean offsets."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.metrics.catalogue import HEADLINE
from ..core.numbers import DASH, fixed, given, percent, readable, with_unit
from ..core.units import counted
from ..results.agreement import VERDICTS, Agreed, Agreement, MetricAgreement
from ..results.compare import Levels

NAMED = 6
TINY = 1e-9
"""Smaller relative differences come from another order of summation."""


def sentences(agreement: Agreement, names: Sequence[str]) -> list[str]:
    """The summary: counts by verdict, mean offsets, metrics that differ, claims with another verdict."""
    a, b = names
    total = len(agreement.numbers)
    combinations = len({number.levels for number in agreement.numbers})
    differ, unclear, agree, missing = (fixed(agreement.count(verdict), 0) for verdict in VERDICTS)
    texts = [
        f"{counted(total, 'number')} at {counted(combinations, 'combination')} of levels compared: "
        f"{agree} agree within their bounds, {differ} differ, {unclear} are unclear, {missing} cannot be compared."
    ]
    metrics = {metric.metric: metric for metric in agreement.metrics()}
    for name in HEADLINE:
        if name in metrics and metrics[name].offset is not None:
            texts.append(_offset(metrics[name], a, b))
    differing = [metric for metric in metrics.values() if metric.counts["differ"]]
    if differing:
        listed = ", ".join(f"{metric.metric} ({metric.counts['differ']})" for metric in differing[:NAMED])
        more = f" and {len(differing) - NAMED} more" if len(differing) > NAMED else ""
        texts.append(f"Metrics with differences beyond their bounds that chance does not explain: {listed}{more}.")
    else:
        texts.append("No number differs from the other by more than its bound and chance explain.")
    if agreement.count("unclear"):
        texts.append(
            "A number is unclear if the interval of its difference crosses the bound, or if it is random and has too "
            "few repetitions: more --repetitions decide it."
        )
    if agreement.verdicts:
        listed = "; ".join(f"{claim.name} {claim.a} on {a}, {claim.b} on {b}" for claim in agreement.verdicts[:NAMED])
        texts.append(f"Claims whose verdicts differ: {listed}.")
    return texts


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


def interval_words(number: Agreed) -> str:
    """The difference and its interval."""
    apart = amount(number.difference, number.unit, signed=True)
    if number.low is None or number.high is None:
        return apart
    return f"{apart} [{amount(number.low, number.unit, signed=True)}, {amount(number.high, number.unit, signed=True)}]"
