"""Intervals inferred from packets, and timers that ran out: what the settings of SCTP's and TCP's ends are made of.

A kernel's timer is late, never early, by up to one tick and an eighth of its length (Linux' timer wheel). One that
counts ticks, as usrsctp's, is early by up to a tick.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence

from ..core.timer_wheel import LATENESS_RATIO
from .native import Ints

MS = 1_000_000
LATE = 1 + LATENESS_RATIO
TICK_NS = 10 * MS  # At 100 Hz, the slowest clock in use
AT_ONCE_NS = 900_000  # An answer that took less than the shortest timer (1 ms) was not put off
MOST_EXPIRIES = 1000
FLOOR = 1.5  # A timer longer than the round trips ask for by this factor is its floor
GROWS = 1.6  # Of two timers in a row: less is no doubling, even if the first was late and the second was not
SAMPLES = 200  # The round trips before these have no part in an RTO any more


@dataclasses.dataclass(frozen=True)
class InferredSetting:
    """What the packets say of one setting of one end.

    end: 0 (the initiator) or 1. name: as in docs/spec.md. low, high: in s or a count; None: not bounded on that side.
    because: a sentence. times_ns: of the packets that show it, as captured.
    """

    end: int
    name: str
    low: float | None
    high: float | None
    unit: str
    because: str
    times_ns: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True)
class Wait:
    """A retransmission timer that ran out: between `least_ns` and `most_ns` long as seen. doublings: how often it had
    run out since the last round-trip sample (of SCTP: of its path); None: not known. sampled: there was one.
    """

    time_ns: int
    path: int
    least_ns: int
    most_ns: int
    doublings: int | None
    sampled: bool

    @property
    def rto_ns(self) -> tuple[float, float]:
        """The RTO that the timer was set to."""
        return timer_bounds(self.least_ns, self.most_ns)


def timer_bounds(least_ns: float, most_ns: float) -> tuple[float, float]:
    """What a timer was set to that ran for so long."""
    return max((least_ns - TICK_NS) / LATE, 0.0), float(most_ns + TICK_NS)


def timer_setting(
    end: int, name: str, bounds_ns: tuple[float | None, float | None], because: str, waits: Sequence[Wait]
) -> InferredSetting:
    """A setting that timers show, in s. Bounds that contradict each other leave it open."""
    low, high = in_seconds(bounds_ns)
    if low is not None and high is not None and low > high:
        low, high = None, None
        because += "; they contradict each other"
    return InferredSetting(end, name, low, high, "s", because, tuple(wait.time_ns for wait in waits[:10]))


def in_seconds(bounds_ns: tuple[float | None, float | None]) -> tuple[float | None, float | None]:
    """Bounds of a time in s."""
    low, high = (None if bound is None else max(bound, 0.0) / 1e9 for bound in bounds_ns)
    return low, high


def floor_of(
    end: int, timer: str, waits: Sequence[Wait], asked_for: Callable[[Wait], tuple[float, float]]
) -> Iterator[InferredSetting]:
    """rto_min, of timers that had not doubled, after round-trip samples. asked_for: the largest RTO that the round
    trips before ask for, and what the end may have added to its floor, ns.
    """
    if not waits:
        return
    shortest = min(waits, key=lambda wait: wait.most_ns)
    low, high = shortest.rto_ns
    asked, added = asked_for(shortest)
    if low > FLOOR * asked:
        what = f"{timer} expired later than its round trips ask for"
        same = [shortest, *(wait for wait in waits if wait is not shortest and wait.rto_ns[0] <= high)]
        yield timer_setting(end, "rto_min", (low - added, high), what, same)
    else:
        yield timer_setting(end, "rto_min", (None, high), f"{timer} expired as early as that", [shortest])


def estimated_rto_ns(rtts: Sequence[int]) -> tuple[float, float]:
    """The RTO without floor by RFC 9260 6.3.1 (as RFC 6298 2), and the smoothed round trip, after some round trips."""
    smooth = variation = 0.0
    for number, rtt in enumerate(rtts[-SAMPLES:]):
        if number:
            variation += (abs(smooth - rtt) - variation) / 4
            smooth += (rtt - smooth) / 8
        else:
            smooth, variation = rtt, rtt / 2
    return smooth + 4 * variation, smooth


def one_a_round_trip(times: Ints, rtts: Ints) -> list[int]:
    """The samples of a sender that measures one packet at a time (RFC 9260 6.3.1 C4). With a queue that grows they vary
    far more than all of them do, and ask for a longer timer.
    """
    taken: list[int] = []
    heard_ns = 0
    for place, (time_ns, rtt_ns) in enumerate(zip(times.tolist(), rtts.tolist(), strict=True)):
        if time_ns - rtt_ns >= heard_ns:
            taken.append(place)
            heard_ns = time_ns
    return taken
