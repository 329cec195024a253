"""Ranges of times that the kernel's timers allow: the RTO, and timeouts in a row, each of which waits twice as long as
the one before (RFC 6298 5.5, RFC 9260 6.3.3 E2).
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from ...captures.native import Ints
from ...core.timer_wheel import HZ, slot_s
from ..sent_times import Sending
from .failover_inputs import FailoverConditions, FailoverSettings

JIFFY_S = 1 / HZ
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


def rto(settings: FailoverSettings, conditions: FailoverConditions) -> Range:
    """RTO in force on the primary at the fault (RFC 9260 6.3.1: SRTT + 4 RTTVAR within RTO.Min and RTO.Max).

    Samples are the base RTT at least. A saturated flow waits in queues; a sparse one for the receiver's delayed SACK.
    RTTVAR is at most their spread, what is left of the first sample's half (beta = 1/4 a sample, one an RTT), and of
    the jump from a first sample without delayed SACK (SRTT follows with alpha = 1/8).
    """
    first = shortest = conditions.rtt_s
    longest = pause = conditions.rtt_s + conditions.queue_s
    if conditions.interval_s is not None:
        delayed = fires(Range(settings.sack_delay_s, settings.sack_delay_s))
        longest += delayed.high
        pause = max(longest, conditions.interval_s)
        if conditions.alone and conditions.interval_s > delayed.high:
            shortest += delayed.low  # but for the first, which is acknowledged at once
    samples = max(0, math.floor(conditions.up_s / pause) - 1)
    if samples == 0:
        low = min(settings.rto_initial_s, settings.rto_min_s)
        return _clamped(settings, Range(low, max(settings.rto_initial_s, 3 * longest)))
    jump = 2 * (shortest - first) * (0.875**samples - 0.75**samples)
    deviation = longest / 2 * 0.75**samples + jump + (longest - shortest) + JIFFY_S
    lowest = shortest - (shortest - first) * 0.875**samples
    return _clamped(settings, Range(lowest + 4 * JIFFY_S, longest + 4 * deviation))


def _clamped(settings: FailoverSettings, value: Range) -> Range:
    return Range(*(min(max(end, settings.rto_min_s), settings.rto_max_s) for end in (value.low, value.high)))


def backed_off(settings: FailoverSettings, first: Range, timeout: int) -> Range:
    """The RTO of the nth timeout in a row (1: the first), doubled each time up to rto_max (RFC 9260 6.3.3 E2)."""
    factor = 2 ** min(timeout - 1, 40)
    return Range(*(min(end * factor, max(settings.rto_max_s, 0)) for end in (first.low, first.high)))


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
