"""Messages put together from chunks, and when they could be handed to the application: as it was, and as one stream.

Ordered messages of a stream are delivered in the order of their SSN (MID), streams independently of each other,
unordered ones at once (RFC 9260 6.5, 6.6; I-DATA: RFC 8260 2.2). As one stream: every message behind all that were sent
before it, as TCP would.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from ..native import UNKNOWN, Bools, Ints, Rows
from .cover import ascending
from .names import DATA, FIRST, FORWARD_TSN, I_DATA, I_FORWARD_TSN, LAST, UNORDERED

COLUMNS = ("tsn", "time_ns", "type", "flags", "stream", "message", "ppid", "user_bytes")
NEVER = np.iinfo(np.int64).max
START = np.iinfo(np.int64).min


@dataclasses.dataclass(frozen=True)
class Messages:
    """One row a message of which anything arrived, by its first TSN. Times: ns as captured.

    arrival_ns: of its last chunk. delivery_ns: in its stream; one_stream_ns: if everything were one ordered stream.
    delivered, delivered_as_one: whether it could be by the end of the capture (only then is the time meaningful).
    fragments: chunks of it, each TSN once. ppid: of its first fragment.
    """

    tsn: Ints
    stream: Ints
    ppid: Ints
    payload_bytes: Ints
    fragments: Ints
    unordered: Bools
    complete: Bools
    arrival_ns: Ints
    delivery_ns: Ints
    delivered: Bools
    one_stream_ns: Ints
    delivered_as_one: Bools

    @property
    def waits_ns(self) -> Ints:
        """Head-of-line delay of what was delivered: delivery less arrival."""
        return (self.delivery_ns - self.arrival_ns)[self.delivered]

    @property
    def waits_as_one_ns(self) -> Ints:
        """The same if everything were one ordered stream, of what would have been delivered."""
        return (self.one_stream_ns - self.arrival_ns)[self.delivered_as_one]


def messages(chunks: Rows, direction: int | None = None, *, whole: bool = True) -> Messages:
    """chunks: of one association, at the receiver. direction: of the data; None: there is only that. whole: the capture
    holds its beginning, so that each stream's first message is number 0 and the first TSN 0; else the first ones seen
    stand in.
    """
    known = chunks["tsn"] >= (0 if whole else UNKNOWN + 1)
    if direction is not None:
        known &= chunks["direction"] == direction
    is_data = (chunks["type"] == DATA) | (chunks["type"] == I_DATA)
    places = np.flatnonzero(is_data & known & ~chunks["is_retransmission"])
    places = places[ascending(chunks["tsn"][places])]
    fresh = {name: chunks[name][places] for name in COLUMNS}
    tsn = fresh["tsn"]
    forward = chunks[((chunks["type"] == FORWARD_TSN) | (chunks["type"] == I_FORWARD_TSN)) & known]
    count = len(tsn)
    flags, time = fresh["flags"], fresh["time_ns"]
    first, last = flags & FIRST != 0, flags & LAST != 0
    interleaved = fresh["type"] == I_DATA
    unordered = flags & UNORDERED != 0
    # bring each message's chunks together: I-DATA's are named by stream, order and MID; DATA's are neighbours
    place = np.arange(count)
    if interleaved.any():
        stream, mid = fresh["stream"], fresh["message"]
        fsn = np.where(first, 0, fresh["ppid"].astype(np.int64))
        # of equal keys, and DATA has none, the order stays that of the TSNs
        place = np.lexsort([np.where(interleaved, key, 0) for key in (fsn, mid, unordered, stream)])
        fsn = fsn[place]
        named = np.zeros(count, dtype=np.bool_)
        named[1:] = interleaved[place][1:] & (
            (stream[place][1:] == stream[place][:-1])
            & (mid[place][1:] == mid[place][:-1])
            & (unordered[place][1:] == unordered[place][:-1])
            & (fsn[1:] == fsn[:-1] + 1)
        )
    else:
        named = np.zeros(count, dtype=np.bool_)
    ordered_tsn, opens, closes = tsn[place], first[place], last[place]
    previous_closes = np.concatenate([[True], closes[:-1]]) if count else closes
    follows = np.zeros(count, dtype=np.bool_)
    follows[1:] = np.where(interleaved[place][1:], named[1:], np.diff(ordered_tsn) == 1)
    begins = ~follows | opens | previous_closes
    starts = np.flatnonzero(begins)
    if not len(starts):
        none = np.zeros(0, dtype=np.int64)
        no = np.zeros(0, dtype=np.bool_)
        return Messages(none, none, none, none, none, no, no, none, none, no, none, no)
    ends = np.concatenate([starts[1:], [count]]) - 1
    head = place[starts]
    order = ascending(tsn[head])
    complete = (opens[starts] & closes[ends])[order]
    arrival = np.maximum.reduceat(time[place], starts)[order]
    payload = np.add.reduceat(fresh["user_bytes"].astype(np.int64)[place], starts)[order]
    head, fragments = head[order], (ends - starts + 1)[order]
    released = _Forward(forward)
    # a message that was abandoned in part no longer holds up others once FORWARD TSN told so (RFC 3758 3.6)
    final = tsn[place[ends]][order] + ~closes[ends][order]
    ready = np.where(complete, arrival, released.at(final))
    hole = released.before(tsn, tsn[head], whole=whole)
    ordered = np.flatnonzero(~unordered[head])
    number = fresh["message"][head].astype(np.int64)[ordered]
    wraps = np.where(interleaved[head], 1 << 32, 1 << 16)[ordered]
    delivery = arrival.copy()
    delivery[ordered] = _in_streams(fresh["stream"][head][ordered], number, wraps, ready[ordered], hole[ordered], whole)
    delivered = complete & (delivery < NEVER)
    one_ns = np.maximum.accumulate(np.maximum(ready, hole))
    as_one = complete & (one_ns < NEVER)
    return Messages(
        tsn=tsn[head],
        stream=fresh["stream"][head].astype(np.int64),
        ppid=fresh["ppid"][head].astype(np.int64),
        payload_bytes=payload,
        fragments=fragments,
        unordered=unordered[head],
        complete=complete,
        arrival_ns=arrival,
        delivery_ns=delivery,
        delivered=delivered,
        one_stream_ns=one_ns,
        delivered_as_one=as_one,
    )


class _Forward:
    """When FORWARD TSN told the receiver to wait no longer for TSNs (RFC 3758 3.6)."""

    def __init__(self, chunks: Rows) -> None:
        self.cumulative = np.maximum.accumulate(chunks["tsn"]) if len(chunks) else np.zeros(0, dtype=np.int64)
        self.time_ns = np.append(chunks["time_ns"], NEVER)

    def at(self, tsn: Ints) -> Ints:
        """When each TSN was told to be abandoned (or was acknowledged already): NEVER if it was not."""
        return self.time_ns[np.searchsorted(self.cumulative, tsn)]

    def before(self, tsn: Ints, head: Ints, *, whole: bool) -> Ints:
        """When the last hole below each head was closed: START if there is none, NEVER if it stays. tsn: ascending."""
        after_hole = tsn[np.concatenate([[whole and tsn[0] > 0], np.diff(tsn) > 1])]
        closed = np.concatenate([[START], self.at(after_hole - 1)])
        return closed[np.searchsorted(after_hole, head, side="right")]


def _in_streams(stream: Rows, number: Ints, wraps: Ints, ready: Ints, hole: Ints, whole: bool) -> Ints:
    """Delivery of ordered messages, given in the order of their TSNs, which is that of their numbers in each stream.

    wraps: how many numbers there are. hole: when the last hole below each was closed; asked where numbers are missing.
    """
    order = np.argsort(stream, kind="stable")  # 16 bit: a radix sort
    stream, number, wraps, ready, hole = stream[order], number[order], wraps[order], ready[order], hole[order]
    begins = np.concatenate([[True], np.diff(stream.astype(np.int64)) != 0])[: len(stream)]
    expected = np.concatenate([[0], number[:-1] + 1])[: len(stream)] % wraps
    expected[begins] = 0 if whole else number[begins]
    ready = np.where(number == expected, ready, np.maximum(ready, np.where(hole == START, NEVER, hole)))
    delivery = np.empty_like(ready)
    delivery[order] = running_maximum(ready, begins)
    return delivery


def running_maximum(values: Ints, begins: Bools) -> Ints:
    """The highest value so far in each run of neighbours; begins: where one starts."""
    if not len(values):
        return values
    run: Ints = np.cumsum(begins)
    low = int(values.min())
    finite = values[values < NEVER]
    span = int(finite.max()) - low + 2 if len(finite) else 1
    if span * int(run[-1]) < 2**62:
        above = np.maximum.accumulate(np.where(values < NEVER, values - low, span - 1) + run * span) - run * span
        return np.where(above < span - 1, above + low, NEVER)
    ladder, rank = np.unique(values, return_inverse=True)
    step = run * len(ladder)
    highest: Ints = ladder[np.maximum.accumulate(rank + step) - step]
    return highest
