"""Acknowledgements that are put off beside Nagle's algorithm (RFC 9293 3.7.4, 3.8.6.3): what a sender waits for."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from ...core.wire import FIN, PSH, RST, SYN
from ..inference import MS
from ..native import Ints
from .limits import Limit

if TYPE_CHECKING:
    from .direction import Direction

AT_ONCE_NS = 1 * MS
LEAST_DELAY_NS = 10 * MS
MOST_DELAY_NS = 510 * MS
"""RFC 9293 3.8.6.3: no acknowledgement is put off for longer than 500 ms."""


@dataclasses.dataclass(frozen=True)
class NagleWaits:
    """Small segments that went out as the acknowledgement of the one before came: when they went, and how long that
    one had waited, beyond the shortest round trip.
    """

    time_ns: Ints
    delay_ns: Ints


def nagle_waits(direction: Direction) -> NagleWaits | None:
    """RFC 9293 3.7.4 beside 3.8.6.3. A pure acknowledgement tells an application nothing: that data go out with it
    shows that they were waiting. None: the capture is not at the sender, or has no round trip.
    """
    data, acks, rtt_ns = direction.data, direction.acks, direction.rtt.rtt_ns
    if not direction.position.is_near or not len(rtt_ns) or direction.largest is None:
        return None
    fresh = data.carries[(data.new_bytes[data.carries] > 0) & ~data.probe[data.carries]]
    if len(fresh) < 2:
        return NagleWaits(fresh[:0], fresh[:0])
    row, last = fresh[1:], fresh[:-1]
    heard = data.before[row] - 1
    there = heard >= 0
    answer = np.maximum(heard, 0)
    pure = (acks.payload_bytes[answer] == 0) & (acks.flags[answer] & (SYN | FIN | RST) == 0) & acks.advances[answer]
    at_once = data.time_ns[row] - acks.time_ns[answer] <= AT_ONCE_NS
    small = (data.payload_bytes[row] < direction.largest) & (data.payload_bytes[last] < direction.largest)
    small &= data.flags[last] & PSH != 0
    covered = (acks.highest_ack[answer] >= data.end[last]) & (acks.row[answer] > data.row[last])
    delay_ns = acks.time_ns[answer] - data.time_ns[last] - int(rtt_ns.min())
    late = (delay_ns >= LEAST_DELAY_NS) & (delay_ns <= MOST_DELAY_NS)
    chosen = there & pure & at_once & small & covered & late
    return NagleWaits(data.time_ns[row[chosen]], delay_ns[chosen])


def with_nagle(bounds: Ints, limit: Ints, waits: NagleWaits | None) -> tuple[Ints, Ints]:
    """Bounds and limits as of `limits_of`, where waits take the place of what is unknown."""
    if waits is None or not len(waits.time_ns) or len(bounds) < 2:
        return bounds, limit
    begin = waits.time_ns - waits.delay_ns
    inner = begin[(begin > bounds[0]) & (begin < bounds[-1])]
    finer = np.unique(np.concatenate([bounds, inner]))
    result = limit[np.searchsorted(bounds, finer[:-1], side="right") - 1].copy()
    place = np.searchsorted(waits.time_ns, finer[:-1], side="right")
    last = np.append(begin, np.iinfo(np.int64).max)[np.minimum(place, len(begin))]
    result[(last <= finer[:-1]) & (result == Limit.UNKNOWN)] = Limit.NAGLE
    return finer, result
