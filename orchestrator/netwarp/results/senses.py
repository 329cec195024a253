"""The meaning of a change: a break, worse, better, or neither, by the sign that the metric has in the catalogue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from ..core.metrics.catalogue import METRICS
from .compared_numbers import ComparedNumber

Sense = Literal["broke", "worse", "better", ""]
"""broke: a connection that ended before its end, or bytes that did not arrive. "": neither better nor worse."""
OF_BREAKS = ("broken_connections", "undelivered_bytes", "undelivered_messages", "aborts", "ends_disagree")
"""Metrics that grow where something broke."""
OF_COMPLETION = "completion_time_s"
"""Has no value of a flow that did not complete."""


def sense(number: ComparedNumber) -> Sense:
    """What the change of one number means. A value that is there no longer (nothing arrived, an outage without an end)
    is worse, and one that is there again is better.
    """
    a, b = number.a, number.b
    metric = METRICS.get(number.metric)
    if a == b:
        return ""
    if number.metric in OF_BREAKS and (b or 0.0) > (a or 0.0):
        return "broke"
    if number.metric == OF_COMPLETION and a is not None and b is None:
        return "broke"
    if metric is None or metric.higher_is_better is None:
        return ""
    if a is None or b is None:
        return "worse" if b is None else "better"
    return "better" if (b > a) == metric.higher_is_better else "worse"


def senses(numbers: Sequence[ComparedNumber]) -> tuple[Sense, ...]:
    """What the changes of the numbers of one combination of levels mean. Where a flow broke, nothing of it is better:
    a dead connection has no more losses, and no more delays.
    """
    found = [sense(number) for number in numbers]
    broken = {(number.levels, number.flow) for number, each in zip(numbers, found, strict=True) if each == "broke"}
    return tuple(
        "" if each == "better" and (number.levels, number.flow) in broken else each
        for number, each in zip(numbers, found, strict=True)
    )
