"""TCP's timers as captures show them: retransmission timeouts at the data's sender, delayed acknowledgements at its
receiver.

What only looks like a timeout is none here: a tail loss probe, or RACK's wait for stragglers (RFC 8985 6.2, 7).
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator

import numpy as np

from ...core.numbers import percent
from ...core.units import counted
from ...core.wire import ACK, FIN, PSH, RST, SYN
from ..arrays import before
from ..inference import (
    AT_ONCE_NS,
    GROWS,
    LATE,
    MOST_EXPIRIES,
    MS,
    SAMPLES,
    TICK_NS,
    InferredSetting,
    Wait,
    floor_of,
    in_seconds,
    timer_bounds,
    timer_setting,
)
from ..native import Bools, Ints
from .columns import DirectionColumns
from .direction import Direction
from .retransmission import DOUBLED, TRIPLED, RetransmissionCause, Retransmissions
from .rtt import Samples, queued_ns

NEVER_CAPPED_NS = 1_000 * MS  # No longest RTO is shorter (Linux: tcp_rto_max_ms; RFC 6298 2.5 has 60 s)
MOST_DELAY_NS = 500 * MS  # RFC 9293 3.8.6.3: no ACK is put off for longer
ENOUGH = 5
PAUSE_NS = 10 * MS  # After a pause longer than its RTO Linux acknowledges quickly again
STEADY = {1: 1000, 2: 100}  # Acknowledgements that show it: of one segment each there are many for other reasons
IN_A_ROW = 40  # Segments after which an end no longer acknowledges quickly for a pause or a loss (Linux: 16 ACKs)


@dataclasses.dataclass(frozen=True)
class _Timeout:
    """A timeout: how long its timer had run at least and at most; nth of its series, from 0. sure: it can be no tail
    loss probe. doubled: what was taken for a probe before it may have been a timeout itself.
    """

    time_ns: int
    least_ns: int
    most_ns: int
    nth: int
    sure: bool
    doubled: bool


def retransmission_timers(direction: Direction, end: int) -> Iterator[InferredSetting]:
    """rto_min and rto_max of the data's sender. Linux adds its floor to the smoothed round trip, others take the larger
    of both (RFC 6298 2.4): the interval has room for either.
    """
    again = direction.retransmissions
    if again is None or not direction.position.is_near:
        return
    timeouts = _timeouts(direction, again)
    samples = _samples(direction)
    sampled_ns = np.sort(np.concatenate([each.time_ns for each in samples]))
    unknown = again.segment[again.cause == RetransmissionCause.UNKNOWN]
    waits = list(_first_waits(timeouts, sampled_ns, direction.data.time_ns[unknown]))
    queue_ns = int(queued_ns(direction.data).max(initial=0))

    def asked_for(wait: Wait) -> tuple[float, float]:
        """By whichever round trips the sender took."""
        estimates = [(0.0, 0.0)]
        for each in samples:
            times, rtts = each.time_ns[each.time_ns <= wait.time_ns], each.rtt_ns[each.time_ns <= wait.time_ns]
            for step in (slice(None), slice(0, None, 2), slice(1, None, 2)):
                estimates.append(_linux_rto_ns(times[step], rtts[step] + queue_ns))
        return max(each[0] for each in estimates), max(each[1] for each in estimates)

    yield from floor_of(end, "its timer", waits, asked_for)
    yield from _longest(end, timeouts)


def _samples(direction: Direction) -> list[Samples]:
    """Round trips by the number of the last segment that an acknowledgement covers, by the first one's (Linux, without
    timestamps), and by timestamps; the handshake's before each.
    """
    data, acks, last = direction.data, direction.acks, direction.rtt
    rtt_ns = direction.position.round_trip_ns
    handshake = np.array([] if rtt_ns is None else [rtt_ns], dtype=np.int64)[: len(data)]
    begin_ns = data.time_ns[: len(handshake)]
    clean = np.flatnonzero(acks.advances & np.isin(acks.time_ns, last.time_ns))
    oldest = np.searchsorted(data.highest_end, before(acks.highest_ack, 0)[clean], side="right")
    sent = oldest < len(data)
    first = Samples(acks.time_ns[clean[sent]], acks.time_ns[clean[sent]] - data.time_ns[oldest[sent]])
    return [
        Samples(np.concatenate([begin_ns, each.time_ns]), np.concatenate([handshake, each.rtt_ns]))
        for each in (last, first, direction.rtt_timestamps)
    ]


def _linux_rto_ns(times: Ints, rtts: Ints) -> tuple[float, float]:
    """The RTO without floor by RFC 6298 2 as Linux has it, and the smoothed round trip: it takes the largest variation
    of a round trip, and forgets a quarter of it in each one (net/ipv4/tcp_input.c:tcp_rtt_estimator).
    """
    smooth = variation = held = top = 0.0
    begun_ns = 0
    for number, (time_ns, rtt) in enumerate(zip(times[-SAMPLES:].tolist(), rtts[-SAMPLES:].tolist(), strict=True)):
        if not number:
            smooth, variation, held, begun_ns = rtt, rtt / 2, rtt / 2, time_ns
            continue
        variation += (abs(smooth - rtt) - variation) / 4
        smooth += (rtt - smooth) / 8
        top = max(top, variation)
        held = max(held, top)
        if time_ns - rtt >= begun_ns:
            held -= (held - top) / 4
            begun_ns, top = time_ns, 0.0
    return smooth + 4 * held, smooth


def _timeouts(direction: Direction, again: Retransmissions) -> list[_Timeout]:
    """The timer starts at the earliest as the first missing segment was sent last, and at the latest with whatever was
    sent or acknowledged last (RFC 6298 5; RFC 8985 7.3 starts it anew with a probe).
    """
    data, acks, rows = direction.data, direction.acks, again.segment
    carries, queued = data.carries, queued_ns(data)
    advanced = np.maximum.accumulate(np.where(acks.advances, acks.time_ns, 0)) if len(acks) else acks.time_ns

    def least_of(row: int, head: int) -> int:
        """Time from whatever was sent or acknowledged last."""
        heard, sent = int(data.before[row]), int(np.searchsorted(carries, row)) - 1
        since = [int(data.time_ns[head]), *([int(advanced[heard - 1])] if heard else [])]
        since += [int(data.time_ns[carries[sent]])] if sent >= 0 else []
        return int(data.time_ns[row]) - int(queued[row]) - max(since)

    result: list[_Timeout] = []
    for place in np.flatnonzero(again.cause == RetransmissionCause.TIMEOUT)[:MOST_EXPIRIES].tolist():
        row = int(rows[place])
        at_ns, una, heard = int(data.time_ns[row]), int(data.seq[row]), int(data.before[row])
        first = int(np.searchsorted(data.highest_end, una, side="right"))
        same = np.flatnonzero((data.seq[rows[:place]] <= una) & (data.end[rows[:place]] > una))
        head = int(rows[same[-1]]) if len(same) else first
        if head >= row or (heard and at_ns - int(acks.time_ns[heard - 1]) < AT_ONCE_NS):
            continue  # an acknowledgement may have been the reason
        nth = int(again.series[place]) - 1
        least_ns = least_of(row, head)
        tail = int(data.end[row]) >= int(data.highest_end[row - 1])
        sure = not tail or len(same) > 0 or direction.sack is False
        probe = len(same) > 0 and again.cause[same[-1]] != RetransmissionCause.TIMEOUT
        doubled = probe and least_ns >= GROWS * least_of(head, first)
        result.append(_Timeout(at_ns, least_ns, at_ns - int(data.time_ns[head]), nth, sure, doubled))
    return result


def _series(timeouts: list[_Timeout]) -> Iterator[list[_Timeout]]:
    """Timeouts in a row, whole from the first on."""
    series: list[_Timeout] = []
    for timeout in timeouts:
        if timeout.nth == 0 and series:
            yield series
            series = []
        if timeout.nth == len(series):
            series.append(timeout)
    if series:
        yield series


def _first_waits(timeouts: list[_Timeout], sampled_ns: Ints, unknown_ns: Ints) -> Iterator[Wait]:
    """The timers that had not doubled, and of those that had what they were before. A timer stays doubled until the
    next round-trip sample (RFC 6298 5.7).
    """
    last_ns = -1
    for series in _series(timeouts):
        first = series[0]
        known = sampled_ns[sampled_ns < first.time_ns]
        since_ns = int(known[-1]) if len(known) else -1
        fresh = since_ns > last_ns and not ((unknown_ns > since_ns) & (unknown_ns < first.time_ns)).any()
        last_ns = series[-1].time_ns
        if not fresh:
            continue
        if first.sure:
            yield Wait(first.time_ns, 0, 0 if first.doubled else first.least_ns, first.most_ns, 0, sampled=True)
        elif len(series) > 1 and DOUBLED <= series[1].most_ns / max(first.most_ns, 1) <= TRIPLED:
            yield Wait(first.time_ns, 0, 0, first.most_ns, 0, sampled=True)
        if not first.sure or first.doubled:
            continue
        # some double only after a few timeouts (Linux: tcp_thin_linear_timeouts), and none beyond the longest
        doubles = [True] + [b.least_ns >= GROWS * a.most_ns for a, b in itertools.pairwise(series)]
        for nth in range(1, len(series)):
            begun = doubles[1] or (len(series) > 2 and doubles[2])
            if begun and all(doubles[2 : nth + 1]):
                timeout = series[nth]
                share = 2**nth
                yield Wait(timeout.time_ns, 0, timeout.least_ns // share, -(-timeout.most_ns // share), 0, sampled=True)


def _longest(end: int, timeouts: list[_Timeout]) -> Iterator[InferredSetting]:
    """rto_max: three timers in a row of one length, after one that had doubled; otherwise at least the longest."""
    longest: list[_Timeout] = []
    capped: list[list[_Timeout]] = []
    for series in _series(timeouts):
        grown = [b.least_ns >= GROWS * a.most_ns for a, b in itertools.pairwise(series)]
        longest += [timeout for timeout, doubled in zip(series[1:], grown, strict=True) if doubled]
        for place in range(1, len(grown) - 1):
            alike = series[place : place + 3]
            even = max(each.most_ns for each in alike) <= LATE * min(each.least_ns for each in alike) + TICK_NS
            if any(grown[:place]) and even and min(each.least_ns for each in alike) >= NEVER_CAPPED_NS:
                capped.append(alike[1:])  # the first may have been shorter by itself
    if capped:
        every = [timeout for alike in capped for timeout in alike]
        low = max(timer_bounds(each.least_ns, 0)[0] for each in every)
        high = min(timer_bounds(0, each.most_ns)[1] for each in every)
        yield timer_setting(end, "rto_max", (low, high), "its timer grew no further", _as_waits(every))
    elif longest:
        last = max(longest, key=lambda timeout: timeout.least_ns)
        low = timer_bounds(last.least_ns, 0)[0]
        yield timer_setting(end, "rto_max", (low, None), "its timer expired as late as that", _as_waits([last]))


def _as_waits(timeouts: list[_Timeout]) -> list[Wait]:
    return [Wait(each.time_ns, 0, each.least_ns, each.most_ns, each.nth, sampled=True) for each in timeouts]


@dataclasses.dataclass(frozen=True)
class _Answers:
    """Acknowledgements that say nothing but that new segments came: how many, the time since the last of them, and
    how many segments had come in order, without a pause, before.
    """

    time_ns: Ints
    segments: Ints
    since_last_ns: Ints
    steady: Ints


def delayed_acknowledgements(direction: Direction, end: int) -> Iterator[InferredSetting]:
    """ack_delay and ack_frequency of an end, in the capture at that end. direction: of the other end's data.

    Elsewhere a queue looks like a delay. Linux' delay is 40 ms, up to 200 ms as packets come further apart.
    """
    far_ns = direction.position.far_ns
    if not direction.position.is_far or far_ns is None or direction.largest is None:
        return
    if (direction.data.payload_bytes > direction.largest).any():
        return  # merged by the receiving interface: how many there were is not known
    answers = _answers(direction)
    waited = answers.since_last_ns > far_ns + AT_ONCE_NS + 3 * MS
    late = waited & (answers.segments == 1)
    waits = np.sort(answers.since_last_ns[late])
    if len(waits) >= ENOUGH:
        typical, above = int(waits[len(waits) // 5]), int(waits[len(waits) * 4 // 5])
        if above <= LATE * typical + TICK_NS and typical <= MOST_DELAY_NS:
            low, high = in_seconds((timer_bounds(typical - far_ns, 0)[0], typical + TICK_NS))
            what = f"{counted(len(waits), 'ACK')} of one segment came late"
            yield InferredSetting(end, "ack_delay", low, high, "s", what, _some(answers.time_ns[late]))
    steady = ~waited & (answers.steady > IN_A_ROW)
    prompt = answers.segments[steady]
    usual = int(np.bincount(prompt).argmax()) if len(prompt) else 0
    share = float((prompt == usual).mean()) if len(prompt) else 0.0
    if usual in STEADY and len(prompt) >= STEADY[usual] and share >= 0.9:
        what = f"{counted(len(prompt), 'ACK')} at once, {percent(share, 2)} of them for {counted(usual, 'segment')}"
        yield InferredSetting(end, "ack_frequency", usual, usual, "", what, _some(answers.time_ns[steady]))


def _some(times_ns: Ints) -> tuple[int, ...]:
    return tuple(times_ns[:10].tolist())


def _answers(direction: Direction) -> _Answers:
    data, acks = direction.data, direction.acks
    odd = _disordered(data)
    fresh = data.carries[~odd[data.carries]]
    reach = data.end[fresh]
    advancing = np.flatnonzero(acks.advances)
    upto = np.searchsorted(reach, acks.highest_ack[advancing], side="right")
    since = np.concatenate([[0], upto[:-1]])[: len(upto)]
    plain = (acks.payload_bytes == 0) & (acks.flags & (SYN | FIN | RST | ACK) == ACK)
    plain &= (acks.sack_blocks == 0) & (before(acks.sack_blocks, 0) == 0) & (acks.window > 0)
    chosen = plain[advancing] & (upto > since)
    last = fresh[np.maximum(upto - 1, 0)] if len(fresh) else upto
    if not len(fresh):
        return _Answers(*(np.zeros(0, dtype=np.int64) for _ in range(4)))
    chosen &= data.end[last] == acks.highest_ack[advancing]  # whole segments, and none of what was out of order
    chosen &= data.row[last] < acks.row[advancing]
    time_ns = acks.time_ns[advancing]
    disorder = np.concatenate([[0], np.cumsum(odd)])
    begun = disorder[np.searchsorted(data.row, acks.row[advancing])]
    chosen &= np.diff(begun, prepend=0) == 0  # since the acknowledgement before it nothing came out of order
    restarts = np.diff(data.time_ns[fresh], prepend=data.time_ns[fresh[:1]]) > PAUSE_NS
    restarts |= np.diff(disorder[fresh], prepend=0) > 0
    count = np.arange(len(fresh))
    steady = (count - np.maximum.accumulate(np.where(restarts, count, 0)))[np.maximum(upto - 1, 0)]
    steady[data.flags[last] & PSH != 0] = 0  # an application that read it has it acknowledged (Linux)
    return _Answers(*(each[chosen] for each in (time_ns, upto - since, time_ns - data.time_ns[last], steady)))


def _disordered(data: DirectionColumns) -> Bools:
    """Segments with payload that came again, below a number seen before, or above one that was missing."""
    known = before(data.highest_end, -1)
    odd: Bools = data.is_retransmission | (data.end <= known) | ((data.seq > known) & (known >= 0))
    return odd & (data.payload_bytes > 0)
