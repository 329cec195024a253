"""When a sender made each segment, and what it had heard by then: what the timestamp option tells (RFC 7323 4).

A capture on the sender's host is taken below its queue (qdisc), so a segment is seen later than it was made.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...core.wire import RST
from ..native import Ints
from .columns import TIMESTAMP, DirectionColumns

TICK_NS = 1_000_000  # Tick of the usual clock of TSval (Linux, Windows, FreeBSD, macOS)
# A clock this close to one tick a millisecond is the usual one: a queue explains the rest in a short connection
USUAL = (0.6, 1.6)
BLOCK_NS = 30_000_000_000  # In this time two clocks drift apart by less than is of interest (3 ms at 100 ppm)


def queued_ns(data: DirectionColumns) -> Ints:
    """Time each segment spent between its sender's stack and the capture point beyond the shortest such time around it,
    to one tick of the sender's clock. 0: no queue, or no timestamps.
    """
    queued = np.zeros(len(data), dtype=np.int64)
    stamped = np.flatnonzero((data.options & TIMESTAMP != 0) & (data.flags & RST == 0))
    if len(stamped) < 2:
        return queued
    time_ns, ticks = data.time_ns[stamped], unwrapped(data.ts_val[stamped])
    ticks -= ticks[0]
    if ticks[-1] <= 0 or time_ns[-1] <= time_ns[0]:
        return queued
    tick_ns = int(time_ns[-1] - time_ns[0]) / int(ticks[-1])
    if USUAL[0] < tick_ns / TICK_NS < USUAL[1]:
        tick_ns = TICK_NS
    beyond = time_ns - time_ns[0] - np.round(ticks * tick_ns).astype(np.int64)
    block = np.maximum.accumulate(time_ns - time_ns[0]) // BLOCK_NS
    begins = np.flatnonzero(np.concatenate([[True], block[1:] != block[:-1]]))
    least = np.minimum.reduceat(beyond, begins)
    least = np.minimum(least, np.minimum(np.append(least[1:], least[-1]), np.append(least[0], least[:-1])))
    least = np.repeat(least, np.diff(np.append(begins, len(stamped))))
    queued[stamped] = np.maximum(0, beyond - least - round(tick_ns))
    return queued


def heard(data: DirectionColumns, acks: DirectionColumns, segment: Ints) -> Ints:
    """Number of the other end's segments that each of these can have answered: at most those captured before it, and
    none whose TSval is newer than the one it echoes (where nothing but acknowledgements came since).
    """
    before = data.before[segment]
    stamped = np.flatnonzero((acks.options & TIMESTAMP != 0) & (acks.flags & RST == 0))
    echoes = (data.options[segment] & TIMESTAMP != 0) & (before > 0)
    if not len(stamped) or not echoes.any():
        return before
    clock = np.maximum.accumulate(unwrapped(acks.ts_val[stamped]))
    last = np.searchsorted(stamped, before) - 1  # the last stamped one before each
    echoes &= last >= 0
    echo = nearest(data.ts_ecr[segment], clock[np.maximum(last, 0)])
    newer = np.searchsorted(clock, echo, side="right")  # the first with a newer TSval
    echoes &= (newer > 0) & (newer <= last)
    until = stamped[np.minimum(newer, len(stamped) - 1)]
    # a segment beyond payload that is not acknowledged yet does not renew the echo (RFC 7323 4.3)
    bare = np.maximum(until - 1, 0)
    echoes &= (acks.payload_bytes[bare] == 0) & (acks.end[bare] == acks.seq[np.maximum(before - 1, 0)])
    return np.where(echoes, until, before)


def reaction_ns(data: DirectionColumns, acks: DirectionColumns) -> int | None:
    """The time from a segment of the other end to one with payload that shows by its echo to answer it, from the
    capture point to the sender and back: the shortest but for one in a hundred (a busy machine's clock errs at times).
    None: no timestamps.
    """
    carries = np.flatnonzero((data.payload_bytes > 0) & (data.options & TIMESTAMP != 0) & (data.before > 0))
    if not len(carries):
        return None
    last = heard(data, acks, carries) - 1
    answers = (last >= 0) & (acks.ts_val[last] == data.ts_ecr[carries])
    times_ns = (data.time_ns[carries] - acks.time_ns[last])[answers]
    return max(0, int(np.quantile(times_ns, 0.01, method="lower"))) if len(times_ns) else None


def unwrapped(values: npt.NDArray[np.uint32]) -> Ints:
    """32-bit numbers that wrap around, as 64-bit ones: each is taken as the nearest to the one before it."""
    if not len(values):
        return np.zeros(0, dtype=np.int64)
    steps = np.diff(values).view(np.int32)  # uint32 differences wrap as they should
    return np.concatenate([[0], np.cumsum(steps, dtype=np.int64)]) + int(values[0])


def nearest(values: npt.NDArray[np.uint32], to: Ints) -> Ints:
    """32-bit numbers as the 64-bit ones nearest to other numbers."""
    return to + (values - to.astype(np.uint32)).view(np.int32).astype(np.int64)
