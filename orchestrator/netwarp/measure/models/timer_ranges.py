"""Ranges of times that the kernel's timers allow: the RTO, and the waits between consecutive timeouts, each twice as
long as the one before (RFC 6298 5.5, RFC 9260 6.3.3 E2).

The tick is the guest kernel's, 1000 Hz (`core.timer_wheel.HZ`); for a kernel with another tick (netns) nothing is said.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from ...captures.native import Ints
from ...core.timer_wheel import HZ, slot_s
from ..sent_data import Sending
from .failover_inputs import FailoverConditions, FailoverSettings

JIFFY_S = 1 / HZ
TCP_RTO_MAX_S = 120.0
"""Linux, include/net/tcp.h: TCP_RTO_MAX."""


@dataclasses.dataclass(frozen=True)
class Range:
    """A closed interval of durations in seconds: `low` and `high` themselves are allowed."""

    low: float
    high: float

    def __add__(self, other: Range) -> Range:
        return Range(self.low + other.low, self.high + other.high)

    def holds(self, value: float, slack: float = 1e-6) -> bool:
        """True if a measured value lies in it."""
        return self.low - slack <= value <= self.high + slack


def fires(duration: Range) -> Range:
    """The times at which a timer set for that long goes off: never early, late by at most its slot of the wheel."""
    return Range(duration.low, duration.high + slot_s(duration.high))


def rto(settings: FailoverSettings, conditions: FailoverConditions) -> Range:
    """RTO in force on the primary at the fault (RFC 9260 6.3.1: SRTT + 4 RTTVAR within RTO.Min and RTO.Max).

    An RTT sample is at least the base RTT. A saturated flow's samples also hold its time in queues; those of a flow
    with pauses also hold the delay of the receiver's SACK. RTTVAR is at most the sum of three: the spread of the
    samples; half of the first sample, times 3/4 for each later sample (beta = 1/4); and what remains of the step from a
    first sample without delayed SACK to the later ones (SRTT follows with alpha = 1/8, RTTVAR with beta). One sample is
    taken per RTT.
    """
    first = shortest = conditions.rtt_s
    longest = pause = conditions.rtt_s + conditions.queue_s
    if conditions.interval_s is not None:
        delayed = fires(Range(settings.sack_delay_s, settings.sack_delay_s))
        longest += delayed.high
        pause = max(longest, conditions.interval_s)
        if conditions.alone and conditions.interval_s > delayed.high:
            shortest += delayed.low  # the very first DATA chunk is acknowledged at once: `first` stays
    samples = max(0, math.floor(conditions.up_s / pause) - 1)
    if samples == 0:
        # no sample yet: RTO.Initial; after one sample R: SRTT = R, RTTVAR = R/2, so 3 R
        return _clamped(settings, Range(settings.rto_min_s, max(settings.rto_initial_s, 3 * longest)))
    jump = 2 * (shortest - first) * (0.875**samples - 0.75**samples)
    deviation = longest / 2 * 0.75**samples + jump + (longest - shortest) + JIFFY_S
    lowest = shortest - (shortest - first) * 0.875**samples
    return _clamped(settings, Range(lowest + 4 * JIFFY_S, longest + 4 * deviation))


def _clamped(settings: FailoverSettings, value: Range) -> Range:
    return Range(*(min(max(end, settings.rto_min_s), settings.rto_max_s) for end in (value.low, value.high)))


def backed_off(settings: FailoverSettings, first: Range, timeout: int) -> Range:
    """The RTO of the nth consecutive timeout (1: the first), doubled each time up to rto_max (RFC 9260 6.3.3 E2)."""
    factor = 2 ** min(timeout - 1, 40)  # a float cannot hold 2 to the power of an error threshold of 65535
    return Range(*(min(end * factor, settings.rto_max_s) for end in (first.low, first.high)))


@dataclasses.dataclass(frozen=True)
class Backoff:
    """waits_s: seconds between consecutive timeouts. allowed: for each wait the range it must lie in, computed from the
    first wait by doubling.
    """

    waits_s: tuple[float, ...]
    allowed: tuple[Range, ...]

    @property
    def outside(self) -> int:
        """The number of waits outside their range."""
        return sum(not range_.holds(wait) for wait, range_ in zip(self.waits_s, self.allowed, strict=True))


def backoff_of(sending: Sending, since_ns: int, until_ns: int | None, longest_s: float) -> Backoff | None:
    """Measures the retransmissions of the first unacknowledged byte (TSN) from `since_ns` on, until an acknowledgement
    for new data arrives or until `until_ns`. longest_s: RTO.Max. None: there are fewer than two waits.
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
    """The range of each of `count` consecutive waits, of which the first took `first_s`.

    The first timer was set for a time between first_s minus one slot of the timer wheel and first_s. Each later timer
    is twice as long, up to longest_s, and late by at most one slot.
    """
    timer = Range(first_s - slot_s(first_s), first_s)
    later = (
        fires(Range(min(timer.low * 2**number, longest_s), min(timer.high * 2**number, longest_s)))
        for number in range(1, count)
    )
    return (Range(first_s, first_s), *later)
