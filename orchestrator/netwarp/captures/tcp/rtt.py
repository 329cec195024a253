"""Round-trip times from a capture: by sequence numbers, and by the timestamp option.

They are measured at the capture point: from a segment that passes it to the acknowledgement that comes back. Only at
the data's sender is this the complete round trip. Both include the receiver's delay of the acknowledgement (RFC 9293
3.8.6.3).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence

import numpy as np

from ...core.wire import RST
from ..native import Bools, Ints
from ..time_spans import by, kept
from .columns import TIMESTAMP, DirectionColumns
from .sender_clock import nearest, unwrapped

QUANTILES = (0, 0.5, 0.95)


@dataclasses.dataclass(frozen=True)
class Samples:
    """Round-trip samples: time at which the acknowledgement passed (ns, as captured), and round-trip time (ns)."""

    time_ns: Ints
    rtt_ns: Ints

    @functools.cached_property
    def _ordered(self) -> Ints:
        """In the places of QUANTILES what sorting would put there."""
        return np.partition(self.rtt_ns, sorted({self._rank(share) for share in QUANTILES}))

    @classmethod
    def within(cls, connections: Sequence[Samples], until_ns: int | None) -> Samples:
        """Those of several connections whose acknowledgement had come by then."""
        counted = [kept(samples, by(samples.time_ns, until_ns)) for samples in connections]
        return cls(*(np.concatenate([getattr(each, name) for each in counted]) for name in ("time_ns", "rtt_ns")))

    @property
    def mean_s(self) -> float | None:
        """Their mean."""
        return float(self.rtt_ns.mean()) / 1e9 if len(self.rtt_ns) else None

    def quantiles_s(self, name: str) -> dict[str, float | int | None]:
        """Their number, the smallest, the median and the 95th percentile: `rtt_samples`, `rtt_min_s`, ..."""
        shares = {"min": 0, "median": 0.5, "p95": 0.95}
        return {f"{name}_samples": len(self.rtt_ns)} | {
            f"{name}_{which}_s": self.quantile_s(share) for which, share in shares.items()
        }

    def _rank(self, share: float) -> int:
        return max(0, int(np.ceil(share * len(self.rtt_ns))) - 1)

    def quantile_s(self, share: float) -> float | None:
        """The smallest sample that at least `share` (one of QUANTILES) of the samples do not exceed; None: no
        samples.
        """
        if share not in QUANTILES:
            raise ValueError(f"{share} is none of {QUANTILES}")
        return float(self._ordered[self._rank(share)]) / 1e9 if len(self.rtt_ns) else None


def by_sequence(data: DirectionColumns, acks: DirectionColumns) -> Samples:
    """One sample per acknowledgement that advances, of the segment with the last byte that it acknowledges.

    Karn's rule (RFC 6298 3): no sample if any newly acknowledged byte was ever sent twice, or was first seen here below
    one already seen (filling a gap acknowledges data that arrived long before). SYN and FIN count as bytes.
    """
    advancing = np.flatnonzero(acks.advances)
    ack = acks.highest_ack[advancing]
    before = np.concatenate([[0], ack[:-1]])  # the first one acknowledges from the SYN on
    last = np.searchsorted(data.highest_end, ack)  # the segment that carried the byte before `ack` first
    known = (last < len(data)) & (ack > 0)
    last = np.minimum(last, max(0, len(data) - 1))
    if not len(data):
        return Samples(advancing[:0], advancing[:0])
    # bytes [before, ack) were carried first by segments first..last; anything odd among those: no sample
    first = np.searchsorted(data.highest_end, before, side="right")
    known &= (acks.row[advancing] > data.row[last]) & (data.seq[last] < ack)  # else it was sent before the capture
    marks = _odd_until(data)
    known &= marks[last + 1] == marks[np.minimum(first, last)]
    known &= ~_touches_odd(data, before, ack)
    chosen = advancing[known]
    rtt = acks.time_ns[chosen] - data.time_ns[last[known]]
    there = rtt >= 0
    return Samples(acks.time_ns[chosen][there], rtt[there])


def _odd_until(data: DirectionColumns) -> Ints:
    """The number of the first k segments that came below a number seen before them (out of order, or retransmitted)."""
    return np.concatenate([[0], np.cumsum(_odd(data))])


def _odd(data: DirectionColumns) -> Bools:
    highest = np.concatenate([[np.iinfo(np.int64).min], data.highest_end[:-1]])
    odd: Bools = (data.end > data.seq) & (data.seq < highest)
    return odd


def _touches_odd(data: DirectionColumns, low: Ints, high: Ints) -> Bools:
    """The ascending ranges [low, high) that contain a byte that was retransmitted at any time, or that came here below
    one already seen: also after the last byte of the range, whose acknowledgement then waited for it.
    """
    odd = np.flatnonzero((data.is_retransmission | _odd(data)) & (data.flags & RST == 0))
    if not len(odd):
        return np.zeros(len(low), dtype=np.bool_)
    start, end = union(data.seq[odd], data.end[odd])
    place = np.searchsorted(end, low, side="right")
    return np.concatenate([start, [np.iinfo(np.int64).max]])[place] < high


def union(start: Ints, end: Ints) -> tuple[Ints, Ints]:
    """Ranges [start, end) merged into disjoint ascending ones."""
    order = np.argsort(start, kind="stable")
    start, reach = start[order], np.maximum.accumulate(end[order])
    fresh = np.concatenate([[True], start[1:] > reach[:-1]])
    last = np.concatenate([np.flatnonzero(fresh)[1:] - 1, [len(start) - 1]])
    return start[fresh], reach[last]


def by_timestamps(data: DirectionColumns, acks: DirectionColumns) -> Samples:
    """One sample per acknowledgement that advances and echoes a timestamp (RFC 7323 4.1), retransmissions included.

    It counts from the first segment with the echoed TSval, so it is too long by at most one tick of the sender's clock.
    """
    stamped = np.flatnonzero((data.options & TIMESTAMP != 0) & (data.flags & RST == 0))
    if len(stamped):  # of the segments of one tick the first
        values = data.ts_val[stamped]
        stamped = stamped[np.concatenate([[0], np.flatnonzero(values[1:] != values[:-1]) + 1])]
    echoing = np.flatnonzero(acks.advances & (acks.options & TIMESTAMP != 0) & (acks.flags & RST == 0))
    if not len(stamped) or not len(echoing):
        return Samples(stamped[:0], stamped[:0])
    sent = np.maximum.accumulate(unwrapped(data.ts_val[stamped]))
    echo = nearest(acks.ts_ecr[echoing], sent[np.searchsorted(data.row[stamped], acks.row[echoing]) - 1])
    place = np.searchsorted(sent, echo)
    fits = place < len(sent)
    place = np.minimum(place, len(sent) - 1)
    fits &= (sent[place] == echo) & (data.row[stamped[place]] < acks.row[echoing])
    chosen = echoing[fits]
    rtt = acks.time_ns[chosen] - data.time_ns[stamped[place[fits]]]
    there = rtt >= 0
    return Samples(acks.time_ns[chosen][there], rtt[there])
