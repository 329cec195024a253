"""Round-trip times from a capture (by sequence numbers, by the timestamp option, of the handshake), the position of the
capture that they show, and the times at which a sender made its segments (its TSval clock, RFC 7323 4).

They are measured at the capture point: from a segment that passes it to the acknowledgement that comes back. Only at
the data's sender is this the complete round trip. Both include the receiver's delay of the acknowledgement (RFC 9293
3.8.6.3).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ...core.wire import ACK, RST
from ..arrays import before, run_begins
from ..capture import NEAR
from ..native import UNKNOWN, Bools, Floats, Ints
from ..time_spans import by, kept
from .columns import TIMESTAMP, DirectionColumns

QUANTILES = (0, 0.5, 0.95)


@dataclasses.dataclass(frozen=True)
class Samples:
    """Round-trip samples: time at which the acknowledgement passed (ns, as captured), and round-trip time (ns)."""

    time_ns: Ints
    rtt_ns: Ints

    @functools.cached_property
    def _quantiles_ns(self) -> Floats:
        return np.quantile(self.rtt_ns, QUANTILES, method="inverted_cdf")

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

    def quantile_s(self, share: float) -> float | None:
        """The smallest sample that at least `share` (one of QUANTILES) of the samples do not exceed; None: no
        samples.
        """
        return float(self._quantiles_ns[QUANTILES.index(share)]) / 1e9 if len(self.rtt_ns) else None


def by_sequence(data: DirectionColumns, acks: DirectionColumns) -> Samples:
    """One sample per acknowledgement that advances, of the segment with the last byte that it acknowledges.

    Karn's rule (RFC 6298 3): no sample if any newly acknowledged byte was ever sent twice, or was first seen here below
    one already seen (filling a gap acknowledges data that arrived long before). SYN and FIN count as bytes.
    """
    advancing = np.flatnonzero(acks.advances)
    ack = acks.highest_ack[advancing]
    acked = before(ack, 0)  # the first one acknowledges from the SYN on
    last = np.searchsorted(data.highest_end, ack)  # the segment that carried the byte before `ack` first
    known = (last < len(data)) & (ack > 0)
    last = np.minimum(last, max(0, len(data) - 1))
    if not len(data):
        return Samples(advancing[:0], advancing[:0])
    # bytes [acked, ack) were carried first by segments first..last; anything odd among those: no sample
    first = np.searchsorted(data.highest_end, acked, side="right")
    known &= (acks.row[advancing] > data.row[last]) & (data.seq[last] < ack)  # else it was sent before the capture
    marks = np.concatenate([[0], np.cumsum(_odd(data))])
    known &= marks[last + 1] == marks[np.minimum(first, last)]
    known &= ~_touches_odd(data, acked, ack)
    chosen = advancing[known]
    rtt = acks.time_ns[chosen] - data.time_ns[last[known]]
    there = rtt >= 0
    return Samples(acks.time_ns[chosen][there], rtt[there])


def _odd(data: DirectionColumns) -> Bools:
    """Those that came below a number seen before them (out of order, or retransmitted)."""
    return (data.end > data.seq) & (data.seq < before(data.highest_end, UNKNOWN))


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
    stamped = data.stamped[run_begins(data.ts_val[data.stamped])]  # of the segments of one tick the first
    echoing = acks.stamped[acks.advances[acks.stamped]]
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


@dataclasses.dataclass(frozen=True)
class CapturePosition:
    """The position as the sender of one direction sees it. near_ns, far_ns: time from the capture point to that sender
    and back, and to the other end and back, from the handshake; None: not seen. given: the position that the caller
    states, which takes precedence (True: at the sender).
    """

    near_ns: int | None = None
    far_ns: int | None = None
    given: bool | None = None

    @property
    def share(self) -> float | None:
        """0: at the sender; 1: at the other end; None: not known."""
        if self.given is not None:
            return 0.0 if self.given else 1.0
        if self.near_ns is None or self.far_ns is None or self.near_ns + self.far_ns == 0:
            return None
        return self.near_ns / (self.near_ns + self.far_ns)

    @property
    def is_near(self) -> bool:
        """True if the capture was taken at the sender."""
        return self.share is not None and self.share < NEAR

    @property
    def is_far(self) -> bool:
        """True if the capture was taken at the other end."""
        return self.share is not None and self.share > 1 - NEAR

    @property
    def round_trip_ns(self) -> int | None:
        """The round-trip time of the handshake: both parts."""
        return None if self.near_ns is None or self.far_ns is None else self.near_ns + self.far_ns


def capture_positions(handshake: tuple[int, int] | None, at: int | None) -> tuple[CapturePosition, CapturePosition]:
    """The positions for both directions. handshake: SYN to SYN+ACK and SYN+ACK to ACK, ns; at: the direction whose
    sender the capture is known to be at.
    """
    to_responder, to_initiator = handshake if handshake else (None, None)
    given = [None if at is None else at == d for d in (0, 1)]
    return CapturePosition(to_initiator, to_responder, given[0]), CapturePosition(to_responder, to_initiator, given[1])


def smallest(values: Ints, other: int | None) -> int | None:
    """The smallest of all values; None if there is none."""
    known = [int(np.min(values))] if len(values) else []
    return min(known + ([] if other is None else [other]), default=None)


def handshake_ns(initiator: DirectionColumns, responder: DirectionColumns) -> tuple[int, int] | None:
    """Time from SYN to SYN+ACK, and from SYN+ACK to the initiator's first ACK of it, at the capture point; None: not
    all seen.

    Also None if a SYN or SYN+ACK was sent twice, and no timestamp tells which of them was answered (Karn).
    """
    asked = initiator.syns[initiator.flags[initiator.syns] & ACK == 0]
    answered = responder.syns
    stamped = (initiator.options[asked] & TIMESTAMP != 0).all()
    if len(asked) > 1 and len(answered) == 1 and stamped and responder.options[answered[0]] & TIMESTAMP:
        asked = asked[initiator.ts_val[asked] == responder.ts_ecr[answered[0]]]
    if len(asked) != 1 or len(answered) != 1 or not responder.flags[answered[0]] & ACK:  # (no simultaneous open)
        return None
    since = int(np.searchsorted(initiator.row, responder.row[answered[0]], side="right"))
    taken = since + np.flatnonzero(initiator.ack[since:] > 0)
    if not len(taken) or initiator.row[asked[0]] > responder.row[answered[0]]:
        return None
    moments = initiator.time_ns[asked[0]], responder.time_ns[answered[0]], initiator.time_ns[taken[0]]
    return int(moments[1] - moments[0]), int(moments[2] - moments[1])


TICK_NS = 1_000_000  # Tick of the usual clock of TSval (Linux, Windows, FreeBSD, macOS)
# A clock this close to one tick a millisecond is the usual one: a queue explains the rest in a short connection
USUAL = (0.6, 1.6)
BLOCK_NS = 30_000_000_000  # In this time two clocks drift apart by less than is of interest (3 ms at 100 ppm)


def queued_ns(data: DirectionColumns) -> Ints:
    """Time each segment spent between its sender's stack and the capture point beyond the shortest such time around it,
    to one tick of the sender's clock. 0: no queue, or no timestamps.
    """
    queued = np.zeros(len(data), dtype=np.int64)
    stamped = data.stamped
    if len(stamped) < 2:
        return queued
    time_ns, ticks = data.time_ns[stamped], unwrapped(data.ts_val[stamped])
    ticks -= ticks[0]
    if ticks[-1] <= 0 or time_ns[-1] <= time_ns[0]:
        return queued
    tick_ns = int(time_ns[-1] - time_ns[0]) / int(ticks[-1])
    if USUAL[0] < tick_ns / TICK_NS < USUAL[1]:
        tick_ns = TICK_NS
    if int(np.abs(ticks).max()) * tick_ns > 2**62:
        return queued  # no clock
    beyond = time_ns - time_ns[0] - np.round(ticks * tick_ns).astype(np.int64)
    block = np.maximum.accumulate(time_ns - time_ns[0]) // BLOCK_NS
    begins = np.flatnonzero(run_begins(block))
    least = np.minimum.reduceat(beyond, begins)
    least = np.minimum(least, np.minimum(np.append(least[1:], least[-1]), np.append(least[0], least[:-1])))
    least = np.repeat(least, np.diff(np.append(begins, len(stamped))))
    queued[stamped] = np.maximum(0, beyond - least - round(tick_ns))
    return queued


def heard(data: DirectionColumns, acks: DirectionColumns, segment: Ints) -> Ints:
    """Number of the other end's segments that each of these can have answered: at most those captured before it, and
    none whose TSval is newer than the one it echoes (where nothing but acknowledgements came since).
    """
    known = data.before[segment]
    stamped = acks.stamped
    echoes = (data.options[segment] & TIMESTAMP != 0) & (known > 0)
    if not len(stamped) or not echoes.any():
        return known
    clock = np.maximum.accumulate(unwrapped(acks.ts_val[stamped]))
    last = np.searchsorted(stamped, known) - 1  # the last stamped one before each
    echoes &= last >= 0
    echo = nearest(data.ts_ecr[segment], clock[np.maximum(last, 0)])
    newer = np.searchsorted(clock, echo, side="right")  # the first with a newer TSval
    echoes &= (newer > 0) & (newer <= last)
    until = stamped[np.minimum(newer, len(stamped) - 1)]
    # a segment beyond payload that is not acknowledged yet does not renew the echo (RFC 7323 4.3)
    bare = np.maximum(until - 1, 0)
    echoes &= (acks.payload_bytes[bare] == 0) & (acks.end[bare] == acks.seq[np.maximum(known - 1, 0)])
    return np.where(echoes, until, known)


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
