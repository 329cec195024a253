"""An agreement in words: what agrees, what does not, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.numbers import DASH, fixed, given, percent, readable, with_unit
from ..core.units import counted
from ..results.agreement import Agreed, Agreement, MetricAgreement
from ..results.compare import Levels

LEADING = ("goodput_bit_s", "throughput_bit_s", "completion_time_s", "outage_s", "failover_time_s", "recovery_time_s",
           "retransmitted_packets")  # fmt: skip
"""The metrics that the sentences name, where they are there."""
NAMED = 6
TINY = 1e-9
"""Relative differences below are sums in another order."""


def sentences(found: Agreement, names: Sequence[str]) -> list[str]:
    """What a reader wants to know first."""
    a, b = names
    total = len(found.numbers)
    places = len({one.levels for one in found.numbers})
    said = [
        f"{counted(total, 'number')} of {counted(places, 'place')} held against each other: "
        f"{fixed(found.count('agree'), 0)} agree within their bounds, {fixed(found.count('differ'), 0)} differ, "
        f"{fixed(found.count('unclear'), 0)} are unclear, {fixed(found.count('not comparable'), 0)} cannot be compared."
    ]
    metrics = {one.metric: one for one in found.metrics()}
    for name in LEADING:
        if name in metrics and metrics[name].offset is not None:
            said.append(_offset(metrics[name], a, b))
    differing = [one for one in metrics.values() if one.counts["differ"]]
    if differing:
        listed = ", ".join(f"{one.metric} ({one.counts['differ']})" for one in differing[:NAMED])
        more = f" and {len(differing) - NAMED} more" if len(differing) > NAMED else ""
        said.append(f"Beyond their bounds by more than chance: {listed}{more}.")
    else:
        said.append("No number lies beyond its bound by more than chance.")
    if found.count("unclear"):
        said.append(
            "Unclear is what reaches over its bound, or is random with too few draws, without more than chance behind "
            "it: more --repetitions would tell."
        )
    if found.verdicts:
        listed = "; ".join(f"{one.name} {one.a} on {a}, {one.b} on {b}" for one in found.verdicts[:NAMED])
        said.append(f"Claims with another verdict: {listed}.")
    return said


def _offset(one: MetricAgreement, a: str, b: str) -> str:
    judged = sum(one.counts[verdict] for verdict in ("agree", "differ", "unclear"))
    said = f"{one.metric}: {one.counts['agree']} of {judged} agree"
    if one.offset is not None:
        if abs(one.offset) < TINY:
            said += f"; in the mean {b} and {a} are equal"
        else:
            size = percent(abs(one.offset), 2)
            said += f"; in the mean {size} {'more' if one.offset > 0 else 'less'} on {b} than on {a}"
        if one.low is not None and one.high is not None:
            said += f" (95 %: {gap(one.low)} to {gap(one.high)})"
    if one.worst is not None and one.worst.relative is not None:
        place = levels_words(one.worst.levels)
        said += f"; farthest out {gap(one.worst.relative)}" + (f" at {place}" if place else "")
    return f"{said}."


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
    """The levels of a place."""
    return " ".join(level for _, level in levels)


def gap_words(one: MetricAgreement) -> str:
    """The mean of the relative differences and its interval."""
    if one.offset is None:
        return DASH
    if one.low is None or one.high is None:
        return gap(one.offset)
    half = one.high - one.offset
    return f"{gap(one.offset)} \u00b1 {given(100 * half if half > TINY else 0, 2)}"


def interval_words(one: Agreed) -> str:
    """The difference and its interval."""
    apart = amount(one.difference, one.unit, signed=True)
    if one.low is None or one.high is None:
        return apart
    return f"{apart} [{amount(one.low, one.unit, signed=True)}, {amount(one.high, one.unit, signed=True)}]"
