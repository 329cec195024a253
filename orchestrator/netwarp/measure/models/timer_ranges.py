"""Ranges of times that the kernel's timers allow, and timeouts in a row: each wait is twice the one before
(RFC 6298 5.5, RFC 9260 6.3.3 E2).
"""

from __future__ import annotations

import dataclasses

import numpy as np

from ...captures.native import Ints
from ...core.timer_wheel import slot_s
from ..sent_times import Sending

TCP_RTO_MAX_S = 120.0
"""Linux, include/net/tcp.h: TCP_RTO_MAX."""


@dataclasses.dataclass(frozen=True)
class Range:
    """From low to high, both possible; seconds."""

    low: float
    high: float

    def __add__(self, other: Range) -> Range:
        return Range(self.low + other.low, self.high + other.high)

    def holds(self, value: float, slack: float = 1e-6) -> bool:
        """Whether a measured value lies in it."""
        return self.low - slack <= value <= self.high + slack


def fires(duration: Range) -> Range:
    """When a timer set for that long goes off: never early, late by at most its slot of the wheel."""
    return Range(duration.low, duration.high + slot_s(duration.high))


@dataclasses.dataclass(frozen=True)
class Backoff:
    """waits_s: between neighbouring timeouts. allowed: where each must lie, given the first and that it doubles."""

    waits_s: tuple[float, ...]
    allowed: tuple[Range, ...]

    @property
    def outside(self) -> int:
        """How many waits are not where they must be."""
        return sum(not range_.holds(wait) for wait, range_ in zip(self.waits_s, self.allowed, strict=True))


def backoff_of(sending: Sending, since_ns: int, until_ns: int | None, longest_s: float) -> Backoff | None:
    """Of the first silence after an instant: retransmissions of the lowest number not acknowledged, until something
    is. longest_s: RTO.Max. None: fewer than two waits.
    """
    heard = sending.ack_ns < since_ns
    una = int(sending.acked[heard].max(initial=0))
    news = sending.ack_ns[(sending.ack_ns >= since_ns) & (sending.acked > una)]
    end_ns = min(
        int(news.min(initial=np.iinfo(np.int64).max)), np.iinfo(np.int64).max if until_ns is None else until_ns
    )
    mine = sending.again & (sending.begin == una) & (sending.sent_ns >= since_ns) & (sending.sent_ns < end_ns)
    times: Ints = sending.sent_ns[mine]
    if len(times) < 3:
        return None
    waits = tuple((np.diff(times) / 1e9).tolist())
    return Backoff(waits, allowed_waits(waits[0], len(waits), longest_s))


def allowed_waits(first_s: float, count: int, longest_s: float) -> tuple[Range, ...]:
    """The first wait was a timer of at most that length, late by at most its slot of the timer wheel; then it doubles,
    up to longest_s, and is late again by at most a slot.
    """
    timer = Range(first_s - slot_s(first_s), first_s)
    later = (
        fires(Range(min(timer.low * 2**number, longest_s), min(timer.high * 2**number, longest_s)))
        for number in range(1, count)
    )
    return (Range(first_s, first_s), *later)
