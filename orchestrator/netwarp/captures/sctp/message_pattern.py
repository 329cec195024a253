"""The pattern of an end's messages, so many each interval: it tells when those were due that the transport held."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..inference import MS
from ..native import Ints
from .transmissions import NEVER

NEAR_NS = 1 * MS
"""Messages sent so close together were due at one time, and one sent so close to a time of the pattern was due then."""
LEAST_TIMES = 5
LATE = 0.25
"""Share of the times of sending that may be later than the pattern's though nothing shows why."""


def due_times(times_ns: Sequence[int], held: Sequence[bool]) -> Ints | None:
    """When each message was due, if so many are at each time, and the times one interval apart; None: they have no
    such pattern.

    times_ns: when each was first sent, in order. held: an acknowledgement or a timer let it go, so it may have been due
    earlier. No message may have been sent before its time, and most that nothing held back were sent at it.
    """
    times = np.asarray(times_ns, dtype=np.int64)
    free = np.flatnonzero(~np.asarray(held, dtype=bool))
    first = free[np.diff(times[free], prepend=-NEVER // 2) > NEAR_NS]
    if len(first) < LEAST_TIMES:
        return None
    apart, count = np.diff(times[first]), np.diff(first)
    found = [
        due
        for each in np.unique([1, *count]).tolist()
        if (count % each == 0).any()
        for due in [_pattern(times, first, each, float(np.median((apart * each / count)[count % each == 0])))]
        if due is not None
    ]
    return min(found, key=lambda due: int((times - due)[free].sum()), default=None)


def _pattern(times: Ints, first: Ints, each: int, interval_ns: float) -> Ints | None:
    """Times with `each` messages, if the messages permit it, as due_times has it. first: the first message of each time
    at which some were sent that nothing held back.
    """
    number = np.arange(len(times)) // each - int(first[0]) // each
    begin_ns = int(times[first[0]])
    for _ in range(2):  # the more messages are seen to be at its times, the better the interval is known
        there = first[np.abs(times[first] - begin_ns - number[first] * interval_ns) <= NEAR_NS]
        if len(there) < LEAST_TIMES or not number[there[-1]]:
            return None
        interval_ns = (int(times[there[-1]]) - begin_ns) / int(number[there[-1]])
    due: Ints = begin_ns + np.round(number * interval_ns).astype(np.int64)
    late = times - due
    if (late < -NEAR_NS).any() or (late[first] > NEAR_NS).sum() > LATE * len(first):
        return None
    return due
