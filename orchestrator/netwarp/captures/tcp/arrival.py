"""Arrivals out of order at a receiver's capture: did the network reorder them, or were they sent again?"""

from __future__ import annotations

import dataclasses

import numpy as np

from ...core.wire import RST, SYN
from ..native import UNKNOWN, Bools, Ints
from .columns import TIMESTAMP, DirectionColumns


@dataclasses.dataclass(frozen=True)
class Arrivals:
    """One row a segment that brings new bytes below the highest number seen before it (RFC 4737 3.3, by bytes).

    reordered: it was sent before what it arrived behind; repaired: it was sent after it, so it was sent again; neither:
    not known. late_ns: since the first segment beyond it arrived.
    """

    segment: Ints
    reordered: Bools
    repaired: Bools
    late_ns: Ints


def arrivals_of(data: DirectionColumns, rtt_min_ns: int | None) -> Arrivals:
    """rtt_min_ns: the smallest whole round trip known (None: not known).

    By timestamps where the two differ: a sender's clock never goes back (RFC 7323 5.4), so an older TSval than that
    of the segment that arrived before and follows in the stream means an original, a newer one a retransmission.
    Else: what comes sooner than a round trip after the gap showed cannot have been asked for.
    """
    counts = (data.payload_bytes > 0) & (data.flags & (SYN | RST) == 0)
    before = np.concatenate([[UNKNOWN], data.highest_end[:-1]]) if len(data) else data.seq
    segment = np.flatnonzero(counts & (data.new_bytes > 0) & (data.end <= before))
    none = np.zeros(len(segment), dtype=np.bool_)
    if not len(segment):
        return Arrivals(segment, none, none, segment)
    # the segment that first went beyond it
    beyond = np.searchsorted(data.highest_end, data.end[segment], side="right")
    beyond = np.minimum(beyond, segment - 1)
    late = data.time_ns[segment] - data.time_ns[beyond]
    stamped = (data.options[segment] & data.options[beyond] & TIMESTAMP) != 0
    age = (data.ts_val[segment] - data.ts_val[beyond]).view(np.int32)
    reordered, repaired = stamped & (age < 0), stamped & (age > 0)
    if rtt_min_ns is not None:
        soon = ~reordered & ~repaired & (late < rtt_min_ns)
        reordered |= soon
    return Arrivals(segment, reordered, repaired, late)
