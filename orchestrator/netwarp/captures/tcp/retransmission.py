"""Classifies retransmissions: at the sender by cause; at the receiver as reordered or retransmitted.

docs/metrics.md, TCP, defines the classes and what each is recognised by.
"""

from __future__ import annotations

import dataclasses
import enum

import numpy as np
import numpy.typing as npt

from ...core.wire import RST, SYN
from ..native import UNKNOWN, Bools, Ints
from .ack_information import Reports
from .columns import TIMESTAMP, DirectionColumns
from .spurious import spurious_by_dsack, spurious_by_timestamps

DUPLICATES_FOR_FAST = 3
"""RFC 5681 3.2."""
DOUBLED = 1.75
"""If a second wait is this many times the first, it was backed off (RFC 6298 5.5), so the first was a timeout
as well.
"""
OVERDUE = 1.5
"""Median round trips after which RACK would long have reacted to the reports it had, or to a lost retransmission."""
SHORTEST_TIMER_NS = 1_000_000
"""No kernel's retransmission timer is shorter; a busy kernel may take nearly as long to answer."""
STRAGGLERS_NS = 20_000_000
"""A kernel whose clock ticks at 100 Hz waits at least two ticks for stragglers (Linux: TCP_TIMEOUT_MIN)."""

REACTION_NS = 100_000
"""A kernel that is not busy sends within this time of what it answers."""


class RetransmissionCause(enum.IntEnum):
    """The cause of a retransmission."""

    UNKNOWN = 0
    FAST = 1
    TIMEOUT = 2
    AFTER_TIMEOUT = 3
    TAIL_PROBE = 4


@dataclasses.dataclass(frozen=True)
class Retransmissions:
    """One row per retransmitted segment. segment: its index in the columns; cause: a RetransmissionCause; waited_ns:
    time since the sender's last sign of progress or the last transmission of the same number; series: consecutive
    timeouts without progress, up to this one (0: no timeout); by_dsack, by_timestamps: spurious (RFC 2883 4; RFC 3522
    3.2).
    """

    segment: Ints
    cause: npt.NDArray[np.uint8]
    waited_ns: Ints
    series: Ints
    by_dsack: Bools
    by_timestamps: Bools

    def count(self, *causes: RetransmissionCause) -> int:
        """Number of retransmissions of these classes."""
        return int(sum(np.count_nonzero(self.cause == cause) for cause in causes))

    @property
    def spurious(self) -> Bools:
        """For each: is it shown to be spurious by either method?"""
        return self.by_dsack | self.by_timestamps


def retransmissions_of(
    data: DirectionColumns,
    acks: DirectionColumns,
    reports: Reports,
    probe: Bools,
    *,
    rtt_min_ns: int | None,
    rtt_ns: int | None,
    sack: bool,
) -> Retransmissions:
    """Classify the retransmissions in `data`. probe: segments that only ask for an answer (not classified); rtt_min_ns:
    the smallest round trip seen (None: none; a wait cannot be told from an answer then); rtt_ns: the median; sack:
    permitted by both ends.
    """
    segment = np.flatnonzero(data.is_retransmission & (data.flags & (SYN | RST) == 0) & ~probe)
    state = _state_of(data, acks, reports, segment)
    eifel = spurious_by_timestamps(data, acks, segment, state.una)
    evidence = (state.highest_sack > state.seq) | ((state.duplicates >= DUPLICATES_FOR_FAST) & (state.seq == state.una))
    # what was sent again before needs newer evidence; without SACK there is none (RFC 6582 3.2: fast once a number)
    again = state.earlier > 0
    evidence = np.where(again, state.overtaken & sack, evidence | (state.overtaken & sack))
    # with evidence it may have waited for stragglers, about a round trip at most (RFC 8985 6.2, reordering window)
    silence = max(SHORTEST_TIMER_NS, rtt_min_ns or 0)
    patience = np.where(evidence, max(silence, STRAGGLERS_NS, OVERDUE * (rtt_ns or 0)), silence)
    quiet = np.full(len(segment), True) if rtt_min_ns is None else state.quiet_ns >= patience
    head, tail = state.seq == state.una, state.end == state.highest_end
    # a timeout while duplicates still come in: sent at none of them, none is news, and the last try or progress is long
    # ago. Of a sender that does not retransmit fast, most timeouts are so
    news = evidence & (rtt_ns is None or state.overtaken_ns < rtt_ns)
    overdue = state.waited_ns > (OVERDUE * rtt_ns if rtt_ns is not None else np.inf)
    reaction_ns = _reaction_ns(state.quiet_ns[evidence & ~again & ~overdue])
    unasked = state.quiet_ns > np.where(again, reaction_ns, max(reaction_ns, REACTION_NS))
    stale = head & (again | (evidence & sack)) & ~news & overdue & unasked
    only = head & tail
    probe_first = tail & quiet & sack & (state.earlier == 0) & ~evidence & ~(only & _backed_off(state))
    # no timer expires within a round trip of what it watches (RFC 6298 2)
    timer = ((quiet & head) | stale) & ~probe_first & (state.unanswered_ns >= silence)
    if rtt_min_ns is None:
        timer &= ~evidence
    # one that was spurious is undone and begins no recovery (RFC 4015)
    after = _open(state, timer & ~eifel) & ~timer
    fast = evidence & ~timer & ~after & ~probe_first
    partial = head & ~quiet & ~timer & ~after & ~fast & _open(state, fast)  # RFC 6582 3.2, partial acknowledgement
    cause = np.full(len(segment), RetransmissionCause.UNKNOWN, dtype=np.uint8)
    for kind, where in (
        (RetransmissionCause.FAST, fast | partial),
        (RetransmissionCause.AFTER_TIMEOUT, after),
        (RetransmissionCause.TIMEOUT, timer),
        (RetransmissionCause.TAIL_PROBE, probe_first & ~after),
    ):
        cause[where] = kind
    return Retransmissions(
        segment=segment,
        cause=cause,
        waited_ns=state.waited_ns,
        series=_series(state.una, cause == RetransmissionCause.TIMEOUT),
        by_dsack=spurious_by_dsack(data, acks, reports, segment),
        by_timestamps=eifel,
    )


def _reaction_ns(quiet_ns: Ints) -> int:
    """A time longer than this sender usually takes from receiving a packet to sending. quiet_ns: of fast
    retransmissions.
    """
    return 2 * int(np.median(quiet_ns)) if len(quiet_ns) else 0


@dataclasses.dataclass(frozen=True)
class _State:
    """The sender's knowledge when it sent each retransmission. earlier: number of earlier retransmissions of the same
    number; unanswered_ns: time since that number was last sent; overtaken: a segment sent after that had been reported
    to have arrived (RFC 8985 6.2), the first report being overtaken_ns ago.
    """

    seq: Ints
    end: Ints
    una: Ints
    highest_end: Ints
    highest_sack: Ints
    duplicates: Ints
    quiet_ns: Ints
    waited_ns: Ints
    unanswered_ns: Ints
    next_wait_ns: Ints
    earlier: Ints
    overtaken: Bools
    overtaken_ns: Ints


def _state_of(data: DirectionColumns, acks: DirectionColumns, reports: Reports, segment: Ints) -> _State:
    before = data.before[segment]
    seq, end, time_ns = data.seq[segment], data.end[segment], data.time_ns[segment]

    def at_sending(values: Ints, initial: int) -> Ints:
        return np.concatenate([[initial], values])[before]

    una = at_sending(acks.highest_ack, 1)
    last_heard = at_sending(acks.time_ns, UNKNOWN)
    advanced = at_sending(np.maximum.accumulate(np.where(acks.advances, acks.time_ns, UNKNOWN)), UNKNOWN)
    earlier, last_sent, next_sent = _history(data, segment)
    since_ns = _overtaken(data, acks, reports, segment, last_sent)
    since = np.maximum(np.maximum(advanced, last_sent), data.time_ns[0] if len(data) else 0)
    return _State(
        seq=seq,
        end=end,
        una=una,
        highest_end=np.concatenate([[UNKNOWN], data.highest_end])[segment],
        highest_sack=at_sending(reports.highest_sack, UNKNOWN),
        duplicates=at_sending(reports.duplicates, 0),
        quiet_ns=time_ns - np.maximum(last_heard, data.time_ns[0] if len(data) else 0),
        waited_ns=time_ns - since,
        unanswered_ns=time_ns - last_sent,
        next_wait_ns=next_sent - time_ns,
        earlier=earlier,
        overtaken=since_ns >= 0,
        overtaken_ns=since_ns,
    )


def _overtaken(
    data: DirectionColumns, acks: DirectionColumns, reports: Reports, segment: Ints, last_sent: Ints
) -> Ints:
    """Time in ns since the first report that a segment sent after last_sent had arrived; -1: there was none.

    Reports: a SACK of a number that had never been sent before last_sent, or an acknowledgement of a retransmission
    sent since.
    """
    if not len(segment) or not len(acks):
        return np.full(len(segment), -1)
    place = np.maximum(0, np.searchsorted(data.time_ns, last_sent, side="right") - 1)
    by_sack = np.searchsorted(reports.highest_sack, data.highest_end[place], side="right")
    # retransmissions in the order of time; which acknowledgement covers each; the earliest of those sent later
    covered = np.searchsorted(acks.highest_ack, data.end[segment])
    earliest = np.append(np.minimum.accumulate(covered[::-1])[::-1], len(acks))
    by_ack = earliest[np.searchsorted(data.time_ns[segment], last_sent, side="right")]
    first = np.minimum(by_sack, by_ack)
    known = first < data.before[segment]
    age = data.time_ns[segment] - acks.time_ns[np.minimum(first, len(acks) - 1)]
    return np.where(known, age, -1)


def _history(data: DirectionColumns, segment: Ints) -> tuple[Ints, Ints, Ints]:
    """For each retransmission: the number of earlier ones of its first number, the time that number was last sent
    before, and the time it is sent next (never: far away). Segments with an equal begin or end count as the same (a
    sender may split or join what it retransmits).
    """
    first = np.minimum(np.searchsorted(data.highest_end, data.seq[segment], side="right"), max(0, len(data) - 1))
    last_sent = data.time_ns[first] if len(data) else segment[:0]
    earlier = np.zeros(len(segment), dtype=np.int64)
    following = np.full(len(segment), np.iinfo(np.int64).max)
    for number in (data.seq[segment], data.end[segment]):
        order = np.argsort(number, kind="stable")  # of one number in the order of time
        same = np.concatenate([[False], number[order][1:] == number[order][:-1]]) if len(order) else order > 0
        times = data.time_ns[segment[order]]
        rank = np.arange(len(order)) - np.maximum.accumulate(np.where(same, 0, np.arange(len(order))))
        again, previous = order[same], order[:-1][same[1:]]
        last_sent[again] = np.maximum(last_sent[again], times[:-1][same[1:]])
        following[previous] = np.minimum(following[previous], times[same])
        earlier[order] = np.maximum(earlier[order], rank)
    return earlier, last_sent, following


def _backed_off(state: _State) -> Bools:
    """For each: is the wait before the next transmission of the same number about twice this one's?"""
    return (state.next_wait_ns < np.iinfo(np.int64).max // 2) & (state.next_wait_ns > DOUBLED * state.waited_ns)


def _open(state: _State, begins: Bools) -> Bools:
    """For each: was it sent before everything sent up to the begin of a recovery was acknowledged (the recovery point,
    RFC 6675 5).
    """
    point = np.maximum.accumulate(np.where(begins, state.highest_end, UNKNOWN)) if len(begins) else state.una
    return state.una < point


def _series(una: Ints, timeout: Bools) -> Ints:
    """Number of consecutive timeouts at the same SND.UNA."""
    series = np.zeros(len(una), dtype=np.int64)
    rows = np.flatnonzero(timeout)
    if len(rows):
        fresh = np.concatenate([[True], una[rows][1:] != una[rows][:-1]])
        place = np.arange(len(rows))
        series[rows] = place - np.maximum.accumulate(np.where(fresh, place, 0)) + 1
    return series


@dataclasses.dataclass(frozen=True)
class Arrivals:
    """One row per segment that brings new bytes below the highest number seen before it (RFC 4737 3.3, by bytes).

    reordered: it was sent before the segment that it arrived behind; repaired: it was sent after it, so it is a
    retransmission; neither: not known. late_ns: time since the first segment beyond it arrived.
    """

    segment: Ints
    reordered: Bools
    repaired: Bools
    late_ns: Ints


def arrivals_of(data: DirectionColumns, rtt_min_ns: int | None) -> Arrivals:
    """rtt_min_ns: the smallest complete round trip known (None: not known).

    Timestamps decide if they differ: a sender's clock never goes back (RFC 7323 5.4), so a TSval older than that of the
    segment that arrived before it means an original, a newer one a retransmission. Otherwise: a segment that arrives
    sooner than a round trip after the gap appeared cannot be an answer to it.
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
