"""Limits of a TCP sender over time: its application, the receiver's window, the congestion window, losses, path.

After Zhang, Breslau, Paxson, Shenker: On the characteristics and origins of Internet flow rates (SIGCOMM 2002; T-RAT);
and Siekkinen et al.: A root cause analysis toolkit for TCP (Computer Networks 52, 2008). Nothing outstanding, and the
time at the receiver's window, are meant as Linux counts them (tcp_chrono_start in net/ipv4/tcp_output.c; TCP_INFO).
"""

from __future__ import annotations

import dataclasses
import enum

import numpy as np

from ...core.wire import FIN, PSH, RST, SYN
from ..arrays import run_begins
from ..capture import AT_REST_NS
from ..native import UNKNOWN, Bools, Ints
from .columns import TIMESTAMP, DirectionColumns
from .rtt import Samples, queued_ns

# A sender answers an acknowledgement within this time (a tick of its timestamps, by which it is known, included)
REACTION_NS = 2_000_000
QUEUED = 1.25  # A round trip of so many times the shortest one, plus a millisecond, has waited in a queue
QUEUED_NS = 1_000_000
AROUND = 8  # Round trips that are judged together, at least


class Limit(enum.IntEnum):
    """What limited the sender. IDLE: its application, nothing was outstanding; APPLICATION: the same, with data
    outstanding."""

    UNKNOWN = 0
    IDLE = 1
    APPLICATION = 2
    RECEIVE_WINDOW = 3
    CONGESTION_WINDOW = 4
    LOSS = 5
    PATH = 6
    NAGLE = 7


# Names of the totals; application_limited_ratio includes IDLE
LIMITED = {
    limit: f"{limit.name.lower()}_limited_ratio" for limit in Limit if limit not in (Limit.UNKNOWN, Limit.IDLE)
} | {Limit.UNKNOWN: "unknown_limit_ratio"}
_UNSENT = 8  # More was to be sent than was, but the sender did not answer acknowledgements: pacing, or its own queue
_NEVER = np.iinfo(np.int64).max // 2


@dataclasses.dataclass(frozen=True)
class Sender:
    """What is known about the sender. shift: scale of the window announced to it (None: not known); mss: the largest
    payload of its segments; near_ns: from the capture to the sender and back, at least; base_ns: the whole round trip;
    at_sender: the capture was taken there, so that near_ns is exact.
    """

    shift: int | None
    mss: int
    near_ns: int
    base_ns: int
    at_sender: bool

    @property
    def reaction_ns(self) -> int:
        """What comes sooner after an acknowledgement is an answer to it."""
        return min(self.base_ns // 4, REACTION_NS if self.at_sender else 2 * REACTION_NS)

    @property
    def patience_ns(self) -> int:
        """What comes later after an acknowledgement is no answer to it."""
        return REACTION_NS if self.at_sender else max(2 * REACTION_NS, self.base_ns // 2)


def limits_of(
    data: DirectionColumns, acks: DirectionColumns, rtt: Samples, repairs: Ints, needless: Bools, sender: Sender
) -> tuple[Ints, Ints]:
    """(bounds in ns, the Limit between each two of them); empty: no payload. repairs: segments of `data` that were sent
    again; needless: those of all segments that are shown to be spurious.

    The times are those at which data would pass the capture point if nothing waited in a queue before it.
    """
    waited = queued_ns(data)
    order = np.flatnonzero((data.new_bytes > 0) & (data.flags & (SYN | RST) == 0))
    if not len(order) or not len(acks):
        return order[:0], order[:0]
    sent_ns = data.time_ns - waited
    order = order[np.argsort(sent_ns[order], kind="stable")]
    when, ack_ns = sent_ns[order], np.maximum.accumulate(acks.time_ns) + sender.near_ns
    end = np.maximum.accumulate(data.end[order] - (data.flags[order] & FIN != 0))
    bounds = np.sort(np.concatenate([when, ack_ns, sent_ns[repairs], sent_ns[-1:]]), kind="stable")
    bounds = bounds[np.diff(bounds, prepend=bounds[0] - 1) > 0]
    last = np.searchsorted(when, bounds[:-1], side="right") - 1
    heard = np.searchsorted(ack_ns, bounds[:-1], side="right")
    una = np.concatenate([[UNKNOWN], acks.highest_ack])[heard]
    drained = (una >= end[last]) | (last < 0)
    span_ns = 2 * max(sender.base_ns, int(np.median(rtt.rtt_ns)) if len(rtt.rtt_ns) else 0)
    bursts = _bursts(data, acks, order, when, end, ack_ns, sender, np.sort(sent_ns[repairs]), span_ns)
    busy = bursts.busy[last]
    limit = np.where(drained, bursts.idle[last], busy)
    queue = _queue_ns(rtt, waited[order], when, sender)[last]
    limit[(limit == Limit.RECEIVE_WINDOW) & (bounds[:-1] >= bursts.open_ns[last])] = _UNSENT
    if not sender.at_sender:  # the way to it and back may have taken longer
        limit[(limit == Limit.IDLE) & (_spell_ns(limit == Limit.IDLE, bounds) <= sender.patience_ns)] = Limit.UNKNOWN
    waits = (limit == Limit.CONGESTION_WINDOW) | (limit == _UNSENT)
    limit[waits & (queue > (QUEUED - 1) * sender.base_ns)] = Limit.UNKNOWN
    limit[waits & (queue > (QUEUED - 1) * sender.base_ns + QUEUED_NS)] = Limit.PATH
    limit[limit == _UNSENT] = Limit.UNKNOWN
    # while both hold, Linux counts the window or not, as it happens
    both = _recovering(data, acks, repairs[~needless[repairs]], sent_ns, ack_ns, bounds)
    limit[both & (limit == Limit.RECEIVE_WINDOW)] = Limit.UNKNOWN
    recovers = _recovering(data, acks, repairs, sent_ns, ack_ns, bounds) & ~drained & (busy != Limit.RECEIVE_WINDOW)
    limit[recovers] = Limit.LOSS
    return bounds, limit


def _spell_ns(holds: Bools, bounds: Ints) -> Ints:
    """For each interval the length of the spell of equal ones that it belongs to."""
    begins = run_begins(holds)
    spell = np.cumsum(begins) - 1
    lengths: Ints = np.diff(bounds[np.append(np.flatnonzero(begins), len(holds))])[spell]
    return lengths


def echo_ns(data: DirectionColumns, acks: DirectionColumns) -> int | None:
    """The shortest time from an acknowledgement to data that echo its timestamp (RFC 7323 4.1), ns: the way from the
    capture to the data's sender and back is no longer. None: no timestamps.
    """
    stamped, echoing = (np.flatnonzero(side.options & TIMESTAMP != 0) for side in (acks, data))
    if not len(stamped) or not len(echoing):
        return None
    values, first = np.unique(acks.ts_val[stamped], return_index=True)
    place = np.minimum(np.searchsorted(values, data.ts_ecr[echoing]), len(values) - 1)
    took = data.time_ns[echoing] - acks.time_ns[stamped[first[place]]]
    took = took[(values[place] == data.ts_ecr[echoing]) & (took >= 0)]
    return int(took.min()) if len(took) else None


@dataclasses.dataclass(frozen=True)
class _Bursts:
    """For each segment of new data the Limit until the next one; the last row is for the time before all of them.

    idle: while nothing is outstanding; busy: while something is; open_ns: when the window was no limit any more, though
    nothing was sent then.
    """

    idle: Ints
    busy: Ints
    open_ns: Ints


def _bursts(
    data: DirectionColumns,
    acks: DirectionColumns,
    order: Ints,
    when: Ints,
    end: Ints,
    ack_ns: Ints,
    sender: Sender,
    repaired_ns: Ints,
    span_ns: int,
) -> _Bursts:
    heard = np.searchsorted(ack_ns, when, side="right")  # number of acknowledgements before each segment
    since = when - np.concatenate([[UNKNOWN], ack_ns])[heard]
    together = (np.diff(heard) == 0) & (np.diff(when) <= REACTION_NS)
    number = np.concatenate([[0], np.cumsum(~together)])
    final = np.append(np.flatnonzero(~together), len(order) - 1)  # the last segment of each burst
    # the segment with the highest number then
    highest = np.maximum.accumulate(np.where(np.diff(end, prepend=UNKNOWN) > 0, np.arange(len(end)), 0))
    tail = order[highest[final]]
    # new data at once after an acknowledgement: more was to be sent before it, or it made room in the sender's buffer
    after = np.append(since[final[:-1] + 1], _NEVER)
    answered, unasked = after <= sender.reaction_ns, after > sender.patience_ns
    # PSH is set where nothing more is to be sent (RFC 9293 3.9.1.2), by Linux with every large packet (TSO) as well
    pushed = data.flags[order] & (PSH | FIN) != 0
    size = min(sender.mss, int(data.payload_bytes[order[~pushed]].max(initial=0)) or sender.mss)
    unsent = (data.flags[tail] & (PSH | FIN) == 0) & bool(pushed.any())
    short = ~unsent & ((data.payload_bytes[tail] % size != 0) | (data.flags[tail] & FIN != 0))
    edge, window = _edges(acks, sender.shift)
    room, window = edge[heard[final]] - end[final], window[heard[final]]
    full = room < size
    # between two times at the window's edge a sender waits for room enough for a large packet (TSO)
    at_edge = when[final][full]
    place = np.searchsorted(at_edge, when[final])
    edges = np.concatenate([[-_NEVER], at_edge, [_NEVER]])
    full |= (room < window // 3) & (edges[place + 1] - edges[place] < 2 * max(sender.base_ns, QUEUED_NS))
    full &= ~unasked | ~short
    following = np.append(order[final[:-1] + 1], tail[-1])
    many = np.add.reduceat(data.new_bytes[order], np.append(0, final[:-1] + 1))
    alone = (many < 2 * size) & ~short
    many = np.append(many[1:], 0) >= 2 * size  # less than a segment may have waited for Nagle's algorithm
    nagle = unsent & (data.payload_bytes[following] < size) & (data.flags[following] & PSH != 0)
    covered = np.concatenate([[0], acks.highest_ack])[heard[final]]
    grows = _grows(when[final], end[final] - np.maximum(covered, 1), repaired_ns, span_ns, size)
    pause = np.diff(when[final], append=_NEVER)
    rest = short | (sender.at_sender & ~unsent & (pause > max(AT_REST_NS, 2 * sender.base_ns)))
    # an application that ends a message within a round trip of it may have had no more to send
    ends = np.concatenate([[-_NEVER], when[final][short], [_NEVER]])
    place = np.searchsorted(ends, when[final], side="right")
    message = np.minimum(when[final] - ends[place - 1], ends[place] - when[final]) <= sender.base_ns
    if not sender.at_sender:  # a full segment alone may be the first to arrive after a timeout
        rest &= ~np.append(alone[1:], False)
    idle = np.select([full, rest, unsent], [Limit.RECEIVE_WINDOW, Limit.IDLE, _UNSENT], Limit.UNKNOWN)
    busy = np.select(
        [full, short & unasked, short | nagle | message, ~answered, (unsent & many) | grows],
        [Limit.RECEIVE_WINDOW, Limit.APPLICATION, Limit.UNKNOWN, _UNSENT, Limit.CONGESTION_WINDOW],
        _UNSENT,
    )
    # the acknowledgement that makes room for a segment; a sender that waits for it sends at once
    opening = np.searchsorted(np.maximum.accumulate(edge), end[final] + size) - 1
    open_ns = np.append(ack_ns, _NEVER)[np.clip(opening, 0, len(ack_ns))]
    late = np.append(when[final][1:], _NEVER) - open_ns > sender.patience_ns
    open_ns = np.where(late, open_ns, _NEVER)
    if sender.shift is None:
        busy[busy != Limit.APPLICATION] = Limit.UNKNOWN
        idle[idle != Limit.IDLE] = Limit.UNKNOWN
    begin = Limit.UNKNOWN if alone[0] and not sender.at_sender else Limit.IDLE
    return _Bursts(np.append(idle[number], begin), np.append(busy[number], begin), np.append(open_ns[number], _NEVER))


def _grows(when: Ints, flight: Ints, repaired_ns: Ints, span_ns: int, size: int) -> Bools:
    """For each burst: do later ones, within span_ns and before the next loss, have at least one segment more in flight
    than any since the loss before? That is how a congestion window grows; a send buffer or a window stays.
    """
    spell = np.searchsorted(repaired_ns, when)
    top = flight + spell * (np.int64(1) << 40)  # the highest so far of each spell between two losses
    top = np.maximum.accumulate(top)
    later = np.searchsorted(when, when + span_ns, side="right") - 1
    ends = np.searchsorted(spell, spell, side="right") - 1
    grown: Bools = top[np.minimum(later, ends)] - top >= size
    return grown


def _edges(acks: DirectionColumns, shift: int | None) -> tuple[Ints, Ints]:
    """The right edge of the announced window after each number of acknowledgements, from 0 on, and the window."""
    counts = (acks.flags & RST == 0) & (acks.ack == acks.highest_ack)
    newest = np.maximum.accumulate(np.where(counts, np.arange(len(acks)), 0))
    scaled = acks.window.astype(np.int64) << np.where(acks.flags & SYN != 0, 0, shift or 0)
    window = np.concatenate([[0], scaled[newest]])
    return np.concatenate([[0], acks.highest_ack]) + window, window


def _queue_ns(rtt: Samples, waited: Ints, when: Ints, sender: Sender) -> Ints:
    """Time that data waited in queues before the capture and, by round trips, after it: the least of each round, since
    a burst alone makes a queue that does not stand.
    """
    if not len(rtt.rtt_ns):
        return _least(when, waited, when, sender.base_ns)
    round_ns = int(np.median(rtt.rtt_ns)) + int(np.median(waited))
    behind = _least(rtt.time_ns + sender.near_ns, rtt.rtt_ns - rtt.rtt_ns.min(), when, round_ns)
    return _least(when, waited, when, round_ns) + behind


def _least(times: Ints, values: Ints, at: Ints, width: int) -> Ints:
    """The least value in the bin of time of each `at` (without one: in the bin before). Bins hold AROUND values and are
    at least so wide.
    """
    order = np.argsort(times, kind="stable")
    times, values = times[order], values[order]
    bins = (times - times[0]) // max(1, width)
    begin = np.flatnonzero(np.diff(bins, prepend=-1))
    begin = begin[np.diff(begin // AROUND, prepend=-1) > 0]
    least: Ints = np.minimum.reduceat(values, begin)[np.maximum(np.searchsorted(times[begin], at, side="right") - 1, 0)]
    return least


def _recovering(
    data: DirectionColumns, acks: DirectionColumns, repairs: Ints, sent_ns: Ints, ack_ns: Ints, bounds: Ints
) -> Bools:
    """For each interval: was data sent again in it, or awaited, or not yet acknowledged up to what was sent before?"""
    again = sent_ns[repairs]
    begin = np.sort(bounds[np.maximum(np.searchsorted(bounds, again) - 1, 0)])
    covered = np.searchsorted(acks.highest_ack, data.highest_end[repairs])
    over = np.sort(np.append(ack_ns, _NEVER)[covered])
    at = bounds[:-1]
    open_: Bools = np.searchsorted(begin, at, side="right") > np.searchsorted(over, at, side="right")
    return open_
