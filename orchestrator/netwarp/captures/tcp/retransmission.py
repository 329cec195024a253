"""Classifies retransmissions: at the sender by cause; at the receiver as reordered or retransmitted.

docs/metrics.md, TCP, defines the classes and what each is recognised by.
"""

from __future__ import annotations

import dataclasses
import enum

import numpy as np
import numpy.typing as npt

from ...core.wire import RST, SYN
from ..arrays import before, latest, rank_in_run, run_begins
from ..native import UNKNOWN, Bools, Ints
from .ack_information import Reports, spurious_by_dsack, spurious_by_timestamps
from .columns import TIMESTAMP, DirectionColumns
from .rtt import TICK_NS, heard, queued_ns, unwrapped

DUPLICATES_FOR_FAST = 3  # RFC 5681 3.2
# If a second wait is this many times the first, it was backed off (RFC 6298 5.5), so the first was a timeout as well
DOUBLED = 1.75
TRIPLED = 2.5  # And if it is more than this many times the first, something else held it up
USUAL_RTO_NS = 200_000_000  # The shortest RTO of Linux (TCP_RTO_MIN), to which it adds the smoothed round trip
SHORTEST_RTO_NS = 190_000_000  # The same less one tick of a kernel at 100 Hz
# Median round trips after which RACK would long have reacted to the reports it had, or to a lost retransmission
OVERDUE = 1.5
# No kernel's retransmission timer is shorter; a busy kernel may take nearly as long to answer
SHORTEST_TIMER_NS = 1_000_000
# A kernel whose clock ticks at 100 Hz waits at least two ticks for stragglers (Linux: TCP_TIMEOUT_MIN)
STRAGGLERS_NS = 20_000_000
# A round trip's share in the smoothed one (RFC 6298 2.3): the smoothed one is at least the last one's share
SMOOTHED = 8
LONGEST_DELAY_NS = 800_000_000  # Before a round trip is known it waits for 1 s
REACTION_NS = 100_000  # A kernel that is not busy sends within this time of what it answers


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
    near_ns: int,
    sack: bool,
    unseen: Ints,
) -> Retransmissions:
    """Classify the retransmissions in `data`. probe: segments that only ask for an answer (not classified); rtt_min_ns:
    the smallest round trip seen (None: none; a wait cannot be told from an answer then); rtt_ns: the median; near_ns:
    from the capture point to the sender and back; sack: permitted by both ends; unseen: segments whose earlier
    transmission did not get here.
    """
    again = data.is_retransmission & (data.flags & (SYN | RST) == 0) & ~probe
    again[unseen] = True
    segment = np.flatnonzero(again)
    state = _state_of(data, acks, reports, segment, near_ns)
    eifel = spurious_by_timestamps(data, acks, segment, state.una)
    evidence = (state.highest_sack > state.seq) | ((state.duplicates >= DUPLICATES_FOR_FAST) & (state.seq == state.una))
    # what was sent again before needs newer evidence; without SACK there is none (RFC 6582 3.2: fast once a number)
    again = state.earlier > 0
    evidence = np.where(again, state.overtaken & sack, evidence | (state.overtaken & sack))
    head, tail = state.seq == state.una, state.end == state.highest_end
    only = head & tail
    # with evidence it may have waited for stragglers, about a round trip at most (RFC 8985 6.2, reordering window)
    silence = max(SHORTEST_TIMER_NS, (rtt_min_ns or 0) + near_ns)
    own_ns = np.maximum((rtt_ns or 0) + near_ns + _median(state.queued_ns), state.last_rtt_ns // SMOOTHED)
    quiet = state.quiet_ns >= np.where(evidence, np.maximum(max(silence, STRAGGLERS_NS), OVERDUE * own_ns), silence)
    # a timer of at least the shortest RTO, and not within a round trip of what it watches (RFC 6298 2), sends one
    # segment (RFC 5681 3.1, loss window), and nothing follows before an answer
    shortest = _shortest_rto_ns(state, head & ~evidence & state.alone)
    within_ns = np.where(evidence, (rtt_min_ns or 0) + near_ns, 0)  # Linux: the smoothed round trip and 200 ms
    waited = np.minimum(state.waited_ns, state.unanswered_ns) - within_ns >= max(silence, shortest)
    timer = head & state.alone & waited
    # a timeout while duplicates still come in: sent at none of them, none is news, and the last try or progress is long
    # ago. Of a sender that does not retransmit fast, most timeouts are so
    overdue = state.waited_ns > OVERDUE * own_ns if rtt_ns is not None else evidence & False
    fresh = np.where(state.overtaken, state.overtaken_ns < own_ns, state.duplicates < 2 * DUPLICATES_FOR_FAST)
    news = evidence & (fresh if rtt_ns is not None else True)
    reaction_ns = 2 * _median(state.quiet_ns[evidence & ~again & ~overdue])
    known_ns = TICK_NS if state.queued_ns.any() else 0  # made_ns is known to a tick of the sender's clock
    unasked = state.quiet_ns > np.where(again, reaction_ns, max(reaction_ns, REACTION_NS)) + known_ns
    stale = (again | sack) & ~news & overdue & unasked
    timer &= np.where(evidence, quiet | (overdue & ~news), quiet | (again & stale))
    probe_first = tail & quiet & sack & ~again & ~evidence & ~(only & _backed_off(state))
    probe_first &= state.unanswered_ns >= silence  # else a copy that the network made
    probe_first &= state.waited_ns <= _longest_probe_ns(own_ns, state.last_rtt_ns)
    timer &= ~probe_first
    # where there is evidence as well, only what follows decides: a timeout's segment is answered first
    # no sender that retransmits fast leaves its evidence unused for so long
    ignored = np.minimum(state.overtaken_ns, state.waited_ns) >= np.maximum(USUAL_RTO_NS, OVERDUE * own_ns)
    ignored &= ~again & (state.quiet_ns > max(REACTION_NS, reaction_ns // 2))
    doubtful = timer & evidence & ~(((quiet | stale) & state.answered_next) | ignored)
    timer &= ~doubtful
    undone, single = _undone(state, timer, eifel)
    # behind losses it need not be the only one
    several = undone & single if len(unseen) else single & False
    after = _after_timeout(state, timer, begins=timer & ~(undone & ~single) & ~several) & ~timer
    if len(unseen):  # and what it sent again first may be lost as well: from a round trip later on
        since_ns = np.maximum.accumulate(np.where(timer, state.made_ns, UNKNOWN))
        later = after & (state.made_ns - since_ns > 2 * own_ns)
        unclear = after & _descended(state, timer, later)
        after, doubtful = after & ~unclear, doubtful | unclear
    # after an RTO of silence what preceded this may have been a timeout of data that never got here
    silent = state.silence_before_ns >= np.maximum(shortest, OVERDUE * own_ns)
    doubtful |= _after_timeout(state, doubtful | timer, begins=doubtful | several) | (silent & ~timer & ~after)
    # a sender cannot answer within less than a round trip: the network made a copy
    doubtful |= state.copied & (silence > 2 * SHORTEST_TIMER_NS)
    other = timer | after | doubtful
    fast = evidence & ~other & ~probe_first
    partial = head & ~quiet & ~other & ~fast & _open(state, fast)  # RFC 6582 3.2, partial acknowledgement
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
        waited_ns=state.seen_wait_ns,
        series=_series(state.una, cause == RetransmissionCause.TIMEOUT),
        by_dsack=spurious_by_dsack(data, acks, reports, segment),
        by_timestamps=eifel,
    )


def _longest_probe_ns(own_ns: Ints, last_rtt_ns: Ints) -> Ints:
    """RFC 8985 7.2: two smoothed round trips, and the longest delay of an acknowledgement; timers are late by an eighth
    and a tick.
    """
    longest: Ints = (2 * np.maximum(own_ns, last_rtt_ns) + LONGEST_DELAY_NS) * 9 // 8 + TICK_NS
    return longest


def _median(times_ns: Ints) -> int:
    return int(np.median(times_ns)) if len(times_ns) else 0


def _shortest_rto_ns(state: _State, unexplained: Bools) -> int:
    """The shortest RTO that this sender can have: the usual one, or a shorter wait that the wire shows to be a timer's,
    since the next one for the same number was about twice as long.
    """
    doubled = _backed_off(state) & (state.next_wait_ns < TRIPLED * state.seen_wait_ns)
    shown = state.waited_ns[unexplained & doubled & (state.waited_ns >= SHORTEST_TIMER_NS)]
    return min(SHORTEST_RTO_NS, int(shown.min() / DOUBLED)) if len(shown) else SHORTEST_RTO_NS


@dataclasses.dataclass(frozen=True)
class _State:
    """The sender's knowledge when it made each retransmission, at made_ns; queued_ns: from then to the capture;
    unanswered_ns: since that number was last sent (in segment `last`); waited_ns: since that or the last progress;
    seen_wait_ns: waited_ns as captured; earlier: number of earlier retransmissions of the same number; overtaken: a
    segment sent after the last had been reported to have arrived (RFC 8985 6.2), the first report being overtaken_ns
    ago; alone: no data follow before something arrives; answered_next: none before it is acknowledged or sent again.
    silence_before_ns: of what was never seen before, how long the sender had made nothing when it made what precedes it
    by number; highest_made: highest_end with what was made before but was captured later; copied: made in the same tick
    and with the same knowledge as the last of that number.
    """

    seq: Ints
    end: Ints
    una: Ints
    highest_end: Ints
    highest_made: Ints
    highest_sack: Ints
    duplicates: Ints
    made_ns: Ints
    queued_ns: Ints
    quiet_ns: Ints
    waited_ns: Ints
    unanswered_ns: Ints
    seen_wait_ns: Ints
    next_wait_ns: Ints
    last_rtt_ns: Ints
    segment: Ints
    last: Ints
    earlier: Ints
    overtaken: Bools
    overtaken_ns: Ints
    alone: Bools
    answered_next: Bools
    silence_before_ns: Ints
    copied: Bools


def _state_of(data: DirectionColumns, acks: DirectionColumns, reports: Reports, segment: Ints, near_ns: int) -> _State:
    # no sender sends again what it knows to be acknowledged
    known = np.minimum(heard(data, acks, segment), np.searchsorted(acks.highest_ack, data.seq[segment], side="right"))
    queued = queued_ns(data) if len(segment) else np.zeros(len(data), dtype=np.int64)
    made_ns = data.time_ns - queued
    seq, time_ns = data.seq[segment], made_ns[segment]
    begin_ns = data.time_ns[0] if len(data) else 0

    def at_making(values: Ints, initial: int) -> Ints:
        return np.concatenate([[initial], values])[known]

    # an answer to what passes here comes by near_ns later at the earliest
    advanced = at_making(np.maximum.accumulate(np.where(acks.advances, acks.time_ns + near_ns, UNKNOWN)), begin_ns)
    previous = np.maximum(0, segment - 1)
    moved = np.concatenate([[UNKNOWN], acks.highest_ack])
    moved_since = np.where(moved[heard(data, acks, previous)] < moved[known], made_ns[previous], begin_ns)
    advanced = np.maximum(advanced, moved_since)  # an acknowledgement may have been lost on its way from here
    earlier, last, next_sent = _history(data, segment)
    # of what was never seen, the first transmission was after what precedes it by number, and before what follows
    reach = np.concatenate([[UNKNOWN], data.highest_end])[last]
    first = np.minimum(np.searchsorted(data.highest_end, reach), max(0, len(data) - 1))
    unseen = ~data.is_retransmission[segment] & (seq >= reach)
    since_ns = _overtaken(data, acks, reports, segment, np.where(unseen, first, last), known, made_ns)
    silence = np.diff(made_ns, prepend=made_ns[:1])
    alone, answered_next = _followed(data, acks, segment, known)
    same_tick, same_knowledge = (stamp[segment] == stamp[last] for stamp in (data.ts_val, data.ts_ecr))
    order = np.argsort(made_ns, kind="stable")
    highest_made = np.zeros(len(data), dtype=np.int64)
    highest_made[order] = np.maximum.accumulate(data.highest_end[order])
    return _State(
        seq=seq,
        end=data.end[segment],
        una=at_making(acks.highest_ack, 1),
        highest_end=np.concatenate([[UNKNOWN], data.highest_end])[segment],
        highest_made=highest_made[segment],
        highest_sack=at_making(reports.highest_sack, UNKNOWN),
        duplicates=at_making(reports.duplicates, 0),
        made_ns=time_ns,
        queued_ns=queued[segment],
        quiet_ns=np.maximum(0, time_ns - np.maximum(at_making(acks.time_ns + near_ns, UNKNOWN), begin_ns)),
        waited_ns=time_ns - np.maximum(np.maximum(advanced, made_ns[last]), begin_ns),
        unanswered_ns=time_ns - made_ns[last],
        seen_wait_ns=data.time_ns[segment] - np.maximum(np.maximum(advanced, data.time_ns[last]), begin_ns),
        next_wait_ns=next_sent - data.time_ns[segment],
        last_rtt_ns=_last_rtt_ns(data, acks, known, near_ns, made_ns),
        segment=segment,
        last=last,
        earlier=earlier,
        overtaken=since_ns >= 0,
        overtaken_ns=np.maximum(0, since_ns - near_ns),
        alone=alone,
        answered_next=answered_next,
        silence_before_ns=np.where(unseen, silence[first], 0),
        copied=~unseen & (data.options[segment] & TIMESTAMP != 0) & same_tick & same_knowledge,
    )


def _last_rtt_ns(data: DirectionColumns, acks: DirectionColumns, known: Ints, near_ns: int, made_ns: Ints) -> Ints:
    """Time from the first transmission of what the last acknowledgement heard covers to that one's arrival at the
    sender; 0: there was none.
    """
    if not len(acks) or not len(data):
        return np.zeros(len(known), dtype=np.int64)
    by = np.maximum(0, known - 1)
    sent = np.minimum(np.searchsorted(data.highest_end, acks.highest_ack[by]), len(data) - 1)
    rtt_ns: Ints = np.maximum(0, acks.time_ns[by] + near_ns - made_ns[sent])
    return np.where((known > 0) & (acks.highest_ack[by] > 0), rtt_ns, 0)


def _followed(data: DirectionColumns, acks: DirectionColumns, segment: Ints, known: Ints) -> tuple[Bools, Bools]:
    """For each retransmission, of the next segment with data: had more been heard when it was made, or is it much
    later? was the retransmission acknowledged before it, or is it the same again? known: heard before each.
    """
    carries = data.carries
    place = np.searchsorted(carries, segment, side="right")
    if not len(carries):
        return place >= 0, place >= 0
    if (data.options[carries] & TIMESTAMP != 0).all():  # a queue may have changed the order in which they were made
        made = np.argsort(unwrapped(data.ts_val[carries]), kind="stable")
        place = np.append(np.argsort(made), len(carries))[np.searchsorted(carries, segment)] + 1
        carries = carries[made]
    none = place >= len(carries)
    following = carries[np.minimum(place, len(carries) - 1)]
    more = heard(data, acks, following)
    una = np.concatenate([[1], acks.highest_ack])[more]
    late = data.time_ns[following] - data.time_ns[segment] >= SHORTEST_RTO_NS
    alone = none | late | (more > known)
    return alone, none | (una > data.seq[segment]) | (data.seq[following] == data.seq[segment])


def _overtaken(
    data: DirectionColumns,
    acks: DirectionColumns,
    reports: Reports,
    segment: Ints,
    last: Ints,
    known: Ints,
    made_ns: Ints,
) -> Ints:
    """Time in ns since the first of the `known` reports that a segment sent after the segment `last` had arrived; -1:
    there was none.

    Reports: a SACK of a number that had never been sent before it, or an acknowledgement or a SACK of a retransmission
    sent since.
    """
    if not len(segment) or not len(acks):
        return np.full(len(segment), -1)
    by_sack = np.searchsorted(reports.highest_sack, data.highest_end[last], side="right")
    # retransmissions in the order of time; which acknowledgement covers each; the earliest of those sent later
    covered = np.searchsorted(acks.highest_ack, data.end[segment])
    earliest = np.append(np.minimum.accumulate(covered[::-1])[::-1], len(acks))
    by_ack = earliest[np.searchsorted(segment, last, side="right")]
    newest = np.append(_newest_reported(data, acks, reports, segment), np.iinfo(np.int64).max)
    first = np.minimum(np.minimum(by_sack, by_ack), np.searchsorted(newest, last, side="right"))
    age = made_ns[segment] - acks.time_ns[np.minimum(first, len(acks) - 1)]
    return np.where(first < known, np.maximum(0, age), -1)


def _newest_reported(data: DirectionColumns, acks: DirectionColumns, reports: Reports, segment: Ints) -> Ints:
    """For each acknowledgement, the last retransmission that SACK had reported by then; -1: none."""
    newest = np.full(len(acks), -1)
    order = np.argsort(data.seq[segment], kind="stable")
    number, sent = data.seq[segment[order]], np.append(segment[order], -1)
    by, start, end = reports.newest
    ranges = np.searchsorted(number, [start, end])
    holds = np.flatnonzero(ranges[0] < ranges[1])
    if len(holds):
        last = np.maximum.reduceat(sent, ranges[:, holds].T.ravel())[::2]
        newest[by[holds]] = np.where(data.row[last] < acks.row[by[holds]], last, -1)
    return np.maximum.accumulate(newest)


def _history(data: DirectionColumns, segment: Ints) -> tuple[Ints, Ints, Ints]:
    """For each retransmission: the number of earlier ones of its first number, the segment that carried that number
    last before, and the time it is sent next (never: far away). Segments with an equal begin or end count as the same
    (a sender may split or join what it retransmits).
    """
    last = np.minimum(np.searchsorted(data.highest_end, data.seq[segment], side="right"), max(0, len(data) - 1))
    earlier = np.zeros(len(segment), dtype=np.int64)
    following = np.full(len(segment), np.iinfo(np.int64).max)
    for number in (data.seq[segment], data.end[segment]):
        order = np.argsort(number, kind="stable")  # of one number in the order of time
        same = ~run_begins(number[order])
        rows = segment[order]
        again, previous = order[same], order[:-1][same[1:]]
        last[again] = np.maximum(last[again], rows[:-1][same[1:]])
        following[previous] = np.minimum(following[previous], data.time_ns[rows[same]])
        earlier[order] = np.maximum(earlier[order], rank_in_run(~same))
    return earlier, last, following


def _backed_off(state: _State) -> Bools:
    """For each: is the wait before the next transmission of the same number about twice this one's?"""
    return (state.next_wait_ns < np.iinfo(np.int64).max // 2) & (state.next_wait_ns > DOUBLED * state.seen_wait_ns)


def _after_timeout(state: _State, timer: Bools, begins: Bools) -> Bools:
    """For each: was it sent in the slow start that a timeout begins, up to the highest number sent by then? A
    retransmission of it that RACK shows to be lost begins a fast recovery instead (Linux: FLAG_LOST_RETRANS).
    """
    timeout = latest(timer)
    lost_again = ~timer & state.overtaken & (state.earlier > 0) & (timeout >= 0)
    lost_again &= state.last >= state.segment[timeout]
    # the segment of a timeout may pass in a queue what was sent before it (Linux gives it another hash: fq, fq_codel)
    lost_again &= state.made_ns - state.unanswered_ns >= state.made_ns[timeout]
    return _open(state, begins) & (latest(lost_again) <= timeout)


def _descended(state: _State, timer: Bools, later: Bools) -> Bools:
    """For each: is it, or one of `later` before it since the last timeout, not above all those since that timeout? What
    a timeout begins goes through the lost numbers once, upwards; a fast recovery that follows begins below again.
    """
    height = np.cumsum(timer) * (int(state.seq.max(initial=0)) + 1) + state.seq
    down = later & (height < np.maximum.accumulate(height))
    return latest(down) > latest(timer)


def _undone(state: _State, timer: Bools, eifel: Bools) -> tuple[Bools, Bools]:
    """Timeouts of a series whose last one was spurious: such a series begins no recovery (RFC 4015). And single ones of
    what had been sent again before: of these, in a fast recovery, Linux tells by the time of the first retransmission,
    and it tries no F-RTO, so they begin one.
    """
    undone, single = np.zeros((2, len(timer)), dtype=np.bool_)
    rows = np.flatnonzero(timer)
    if len(rows):
        number = np.cumsum(run_begins(state.una[rows])) - 1
        last = np.append(np.flatnonzero(np.diff(number)), len(rows) - 1)
        undone[rows] = eifel[rows[last]][number]
        single[rows] = ((np.bincount(number) == 1) & (state.earlier[rows[last]] > 0))[number]
    return undone, single


def _open(state: _State, begins: Bools) -> Bools:
    """For each: was it sent before everything sent up to the begin of a recovery was acknowledged (the recovery point,
    RFC 6675 5).
    """
    return state.una < np.maximum.accumulate(np.where(begins, state.highest_made, UNKNOWN))


def _series(una: Ints, timeout: Bools) -> Ints:
    """Number of consecutive timeouts at the same SND.UNA."""
    series = np.zeros(len(una), dtype=np.int64)
    rows = np.flatnonzero(timeout)
    series[rows] = rank_in_run(run_begins(una[rows])) + 1
    return series


@dataclasses.dataclass(frozen=True)
class Arrivals:
    """One row per segment that brings new bytes below the highest number seen before it (RFC 4737 3.3, by bytes).

    reordered: it was sent before the segment that it arrived behind; repaired: it was sent after it, so it is a
    retransmission; neither: not known. again: repaired, or of the same tick of the sender's clock but late enough to be
    an answer.
    """

    segment: Ints
    reordered: Bools
    repaired: Bools
    again: Bools


def arrivals_of(data: DirectionColumns, rtt_min_ns: int | None) -> Arrivals:
    """rtt_min_ns: the smallest complete round trip known (None: not known).

    Timestamps decide if they differ: a sender's clock never goes back (RFC 7323 5.4), so a TSval older than that of the
    segment that arrived before it means an original, a newer one a retransmission. Without them the IPv4 identification
    decides likewise, where it counts packets. Otherwise: a segment that arrives sooner than a round trip after the gap
    appeared cannot be an answer to it.
    """
    filling = (data.new_bytes > 0) & (data.end <= before(data.highest_end, UNKNOWN))
    segment = data.carries[filling[data.carries]]
    none = np.zeros(len(segment), dtype=np.bool_)
    if not len(segment):
        return Arrivals(segment, none, none, none)
    # the segment that first went beyond it
    beyond = np.searchsorted(data.highest_end, data.end[segment], side="right")
    beyond = np.minimum(beyond, segment - 1)
    late = data.time_ns[segment] - data.time_ns[beyond]
    stamped = (data.options[segment] & data.options[beyond] & TIMESTAMP) != 0
    age = (data.ts_val[segment] - data.ts_val[beyond]).view(np.int32)
    reordered, repaired = stamped & (age < 0), stamped & (age > 0)
    if data.numbered:
        later = (data.ip_id[segment] - data.ip_id[beyond]).view(np.int16) > 0
        reordered, repaired = reordered | (~stamped & ~later), repaired | (~stamped & later)
    if rtt_min_ns is not None:
        reordered |= ~repaired & (late < rtt_min_ns)
    return Arrivals(segment, reordered, repaired, repaired | (stamped & ~reordered))
