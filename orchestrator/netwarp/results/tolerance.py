"""Tolerances: how far a number may be from the same number on another back end before the two disagree.

Nothing here is tuned: each bound follows from the properties of the instrument that EXPLAINED names, computed for the
cell at hand.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ..core.metrics.catalogue import METRICS, Clock
from ..core.timer_wheel import LATENESS_RATIO

EXPLAINED = (
    ("L", "The lateness at which a cell still counts (beyond it, it is INVALID): every start, fault and repair may be "
          "that late."),
    ("w", "8/63 of the time that timers decide: the kernel's timer wheel rounds an expiry up by at most 8/63 "
          "of the timer's length, depending on where in its ticks the timer begins (kernel/time/timer.c: 64 ms for "
          "timers of 0.5 to 4 s at 1000 Hz). The virtual clock begins every cell at the same tick, the wall clock at "
          "any. Times after a repair count from the fault here, where those timers began."),
    ("S/T", "S = 2 L + 8/63 of the longest silence at a fault is how far the times of a flow may shift; over the "
            "time T that it sends, amounts and rates may differ by S/T."),
    ("2, 2 packets", "The packets that one acknowledgement is for (RFC 9260 6.2, RFC 9293 3.8.6.3): they may fall on "
                     "the other side of an edge."),
    ("sample, 1 packet", "What the kernel's samples tell may be one sample later, or one packet more."),
    ("sd", "One standard deviation between the reference's seeds, where the cell is random: a back end may move a mean "
           "by less than another seed does."),
    ("95 %", "Welch's interval of the difference of the means; where nothing is random, that of the repetitions on the "
             "wall clock. A number agrees where the interval lies within the bound, and differs where the difference "
             "is beyond it by more than chance (false discoveries held at 5 %)."),
)  # fmt: skip
"""(term, what it is), for people."""
COUNTS = frozenset({"packets", "packet", "chunks", "chunk", "messages", "message", "events", "event", "timeouts"})
PAIR = 2
"""Packets: one acknowledgement, and so what it lets go, is for two (RFC 9260 6.2, RFC 9293 3.8.6.3)."""
FAR_LARGER = 100
"""A time this many times as long as an instant may be late: what the clock rounds is then below some percent of it."""
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Circumstances:
    """The properties of a flow of one combination from which its bounds are computed (s; packets; bytes).

    fault_s: from the first to the last step of the timeline, 0 without one. silence_s: longest silence that overlaps a
    fault, on either side. window_s: how long the flow sends. packets, acks: in the data direction, and in the other.
    sample_s: interval of the kernel's samples. own: the spec's own metrics, name -> expression.
    """

    lateness_s: float
    fault_s: float
    silence_s: float
    window_s: float
    packets: float
    acks: float
    mtu_bytes: int
    sample_s: float
    own: Mapping[str, str]

    @property
    def shift_s(self) -> float:
        """S."""
        return 2 * self.lateness_s + LATENESS_RATIO * self.silence_s


@dataclass(frozen=True, slots=True)
class Tolerance:
    """bound: in the metric's unit. why: the parts of the bound, as text."""

    bound: float
    why: str


def tolerance(metric: str, unit: str, value: float, at: Circumstances, spread: float | None) -> Tolerance:
    """The bound of one number. value: its size. spread: sd between seeds, None where nothing is random."""
    share = at.shift_s / at.window_s if at.window_s else 0.0
    size = abs(value)
    clock, clocks = _clock(metric, unit), {_clock(name, "") for name in made_of(metric, at.own)}
    if unit == "s" and clock != "delay":
        # the timers that end a time after a repair began at the fault
        length = (size + (at.fault_s if "repair" in clocks else 0.0)) if at.fault_s else 0.0
        bound, why = 2 * at.lateness_s + LATENESS_RATIO * length, "2 L + w" if length else "2 L"
        if "sample" in clocks:
            bound, why = bound + at.sample_s, f"{why} + sample"
    elif unit == "s":
        bound, why = 2 * at.lateness_s + size * share, "2 L + S/T"
    elif unit in COUNTS and metric not in at.own:
        bound, why = PAIR + size * share, "2 + S/T"
    elif clock == "sample":
        bound, why = at.mtu_bytes + size * share, "1 packet + S/T"
    elif unit == "ratio":
        bound, why = size * share + (PAIR / at.acks if at.acks else 0.0), "S/T + 2 packets"
    else:
        bound, why = size * (share + (PAIR / at.packets if at.packets else 0.0)), "S/T + 2 packets"
    if spread is not None:
        return Tolerance(bound + spread, f"{why} + sd")
    return Tolerance(bound, why)


def resolution(metric: str, unit: str, value: float, sends_s: float, lateness_s: float) -> float:
    """The most by which a number may differ on one clock although nothing changed: both ends of a time may be late, and
    a rate is divided by such a time. Counts are exact. value: its size. sends_s: how long its flow may send.
    """
    if _clock(metric, unit) == "none":
        return 0.0
    if unit == "s":
        return 2 * lateness_s
    if (unit in COUNTS or unit == "bytes") and _clock(metric, unit) != "sample":
        return 0.0
    return value * 2 * lateness_s / sends_s if sends_s > 0 else 0.0


def alike_within(metric: str, unit: str, value: float, sends_s: float, lateness_s: float) -> float:
    """How far draws of a number may be apart and still count as one value: as far as its clock resolves, if the number
    is far larger than that. 0 else, and for the spec's own metrics: a formula may make a number as small as it likes.
    """
    if metric not in METRICS or (unit == "s" and value <= FAR_LARGER * lateness_s):
        return 0.0
    return resolution(metric, unit, value, sends_s, lateness_s)


def _clock(metric: str, unit: str) -> Clock:
    """The clock of a metric: the catalogue's; for a metric of the spec's own, by its unit."""
    return METRICS[metric].clock if metric in METRICS else "moment" if unit == "s" else "flow"


def made_of(metric: str, own: Mapping[str, str]) -> frozenset[str]:
    """The metric, and those that a metric of the spec's own is computed from."""
    names, left = {metric}, [metric]
    while left:
        for name in _NAME.findall(own.get(left.pop(), "")):
            if name not in names:
                names.add(name)
                left.append(name)
    return frozenset(names)
