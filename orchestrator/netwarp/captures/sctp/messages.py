"""Messages put together from chunks, and when they could be handed to the application: as it was, and as one stream.

Ordered messages of a stream are delivered in the order of their SSN (MID), streams independently of each other,
unordered ones at once (RFC 9260 6.5, 6.6; I-DATA: RFC 8260 2.2). As one stream: every message behind all that were sent
before it, as TCP would.
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from ...core.wire import FIRST, FORWARD_TSN, I_DATA, I_FORWARD_TSN, LAST, UNORDERED
from ..native import UNKNOWN, Bools, Ints, Rows
from .columns import Columns, columns
from .interval_search import ascending_order, search_ascending

NEVER = np.iinfo(np.int64).max
START = np.iinfo(np.int64).min


@dataclasses.dataclass(frozen=True)
class Messages:
    """One row a message of which anything arrived, by its first TSN. Times: ns as captured. What columns need the order
    of delivery, or are asked for by few, are made when they are first asked for.

    chunks, row: its first chunk. whole: see `messages`. arrival_ns: of its last chunk. fragments: chunks of it, each
    TSN once. ready_ns: when it no longer held up others: arrived or abandoned, or NEVER. hole_ns: when the last TSN
    that was missing before it was there or abandoned; START: none was missing.
    """

    chunks: Columns = dataclasses.field(repr=False)
    row: Ints
    whole: bool
    tsn: Ints
    payload_bytes: Ints
    fragments: Ints
    unordered: Bools
    complete: Bools
    arrival_ns: Ints
    ready_ns: Ints
    hole_ns: Ints

    @functools.cached_property
    def stream(self) -> Ints:
        """Stream Identifier."""
        return self.chunks["stream"][self.row].astype(np.int64)

    @functools.cached_property
    def ppid(self) -> Ints:
        """Payload Protocol Identifier of the first fragment."""
        return self.chunks["ppid"][self.row].astype(np.int64)

    @functools.cached_property
    def delivery_ns(self) -> Ints:
        """When it could be delivered in its stream; meaningful where `delivered`."""
        ordered = np.flatnonzero(~self.unordered)
        row = self.row[ordered]
        number = self.chunks["message"][row].astype(np.int64)
        wraps = np.where(self.chunks["type"][row] == I_DATA, 1 << 32, 1 << 16)
        ready, hole = self.ready_ns[ordered], self.hole_ns[ordered]
        delivery = self.arrival_ns.copy()
        delivery[ordered] = _in_streams(self.chunks["stream"][row], number, wraps, ready, hole, self.whole)
        return delivery

    @functools.cached_property
    def delivered(self) -> Bools:
        """Whether it could be by the end of the capture."""
        delivered: Bools = self.complete & (self.delivery_ns < NEVER)
        return delivered

    @functools.cached_property
    def one_stream_ns(self) -> Ints:
        """When it could be delivered if everything were one ordered stream; meaningful where `delivered_as_one`."""
        delivery: Ints = np.maximum.accumulate(np.maximum(self.ready_ns, self.hole_ns))
        return delivery

    @functools.cached_property
    def delivered_as_one(self) -> Bools:
        """Whether it could be then by the end of the capture."""
        delivered: Bools = self.complete & (self.one_stream_ns < NEVER)
        return delivered

    @functools.cached_property
    def waits_ns(self) -> Ints:
        """Head-of-line delay of what was delivered: delivery less arrival."""
        return (self.delivery_ns - self.arrival_ns)[self.delivered]

    @functools.cached_property
    def waits_as_one_ns(self) -> Ints:
        """The same if everything were one ordered stream, of what would have been delivered."""
        return (self.one_stream_ns - self.arrival_ns)[self.delivered_as_one]


def messages(chunks: Rows | Columns, direction: int | None = None, *, whole: bool = True) -> Messages:
    """chunks: of one association, at the receiver. direction: of the data; None: there is only that. whole: the capture
    holds its beginning, so that each stream's first message is number 0 and the first TSN 0; else the first ones seen
    stand in.
    """
    table = columns(chunks)
    known = table["tsn"] >= (0 if whole else UNKNOWN + 1)
    if direction is not None:
        known &= table["direction"] == direction
    places = np.flatnonzero(table.is_data & known & ~table["is_retransmission"])
    places = places[ascending_order(table["tsn"][places])]
    tsn, time, flags = (table[name][places] for name in ("tsn", "time_ns", "flags"))
    forward = table.of_type(FORWARD_TSN, I_FORWARD_TSN)
    count = len(tsn)
    first, last = flags & FIRST != 0, flags & LAST != 0
    interleaved = table["type"][places] == I_DATA
    unordered = flags & UNORDERED != 0
    # bring each message's chunks together: I-DATA's are named by stream, order and MID; DATA's are neighbours
    follows = np.zeros(count, dtype=np.bool_)
    if interleaved.any():
        place = _together(table, places, interleaved, first, unordered, follows)
        opens, closes = first[place], last[place]
    else:
        follows[1:] = np.diff(tsn) == 1
        place, opens, closes = np.arange(count), first, last
    previous_closes = np.concatenate([[True], closes[:-1]]) if count else closes
    starts = np.flatnonzero(~follows | opens | previous_closes)
    if not len(starts):
        none = np.zeros(0, dtype=np.int64)
        no = np.zeros(0, dtype=np.bool_)
        return Messages(table, none, whole, none, none, none, no, no, none, none, none)
    ends = np.concatenate([starts[1:], [count]]) - 1
    head = place[starts]
    order = ascending_order(tsn[head])
    complete = (opens[starts] & closes[ends])[order]
    arrival = _of_each(np.maximum, time[place], starts)[order]
    payload = _of_each(np.add, table["user_bytes"][places[place]].astype(np.int64), starts)[order]
    head, fragments = head[order], (ends - starts + 1)[order]
    released = _Forward(table.rows[forward[known[forward]]])
    # a message that was abandoned in part no longer holds up others once FORWARD TSN told so (RFC 3758 3.6)
    broken = np.flatnonzero(~complete)
    end = ends[order][broken]
    ready = arrival.copy()
    ready[broken] = released.at(tsn[place[end]] + ~closes[end])
    return Messages(
        chunks=table,
        row=places[head],
        whole=whole,
        tsn=tsn[head],
        payload_bytes=payload,
        fragments=fragments,
        unordered=unordered[head],
        complete=complete,
        arrival_ns=arrival,
        ready_ns=ready,
        hole_ns=released.before(tsn, tsn[head], whole=whole),
    )


def _together(table: Columns, places: Ints, interleaved: Bools, first: Bools, unordered: Bools, follows: Bools) -> Ints:
    """The order that makes each message's chunks neighbours; writes to `follows` which of them go on from the one
    before. places: of the chunks in the table, by TSN, as the rest is.
    """
    tsn, stream, mid = (table[name][places] for name in ("tsn", "stream", "message"))
    fsn = np.where(first, 0, table["ppid"][places].astype(np.int64))
    # of equal keys, and DATA has none, the order stays that of the TSNs
    place: Ints = np.lexsort([np.where(interleaved, key, 0) for key in (fsn, mid, unordered, stream)])
    tsn, stream, mid, fsn, turn = tsn[place], stream[place], mid[place], fsn[place], unordered[place]
    same = (stream[1:] == stream[:-1]) & (mid[1:] == mid[:-1]) & (turn[1:] == turn[:-1])
    follows[1:] = np.where(interleaved[place][1:], same & (np.diff(fsn) == 1), np.diff(tsn) == 1)
    return place


def _of_each(combine: np.ufunc, values: Ints, starts: Ints) -> Ints:
    """By message; where each is one chunk the values themselves."""
    combined: Ints = values if len(starts) == len(values) else combine.reduceat(values, starts)
    return combined


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
        return closed[search_ascending(after_hole, head, side="right")]


def _in_streams(stream: Rows, number: Ints, wraps: Ints, ready: Ints, hole: Ints, whole: bool) -> Ints:
    """Delivery of ordered messages, given in the order of their TSNs, which is that of their numbers in each stream.

    wraps: how many numbers there are. hole: when the last hole below each was closed; asked where numbers are missing.
    """
    order = ascending_order(stream)  # 16 bit: a radix sort
    stream, number, wraps, ready, hole = stream[order], number[order], wraps[order], ready[order], hole[order]
    begins = np.concatenate([[True], stream[1:] != stream[:-1]])[: len(stream)]
    expected = np.concatenate([[0], number[:-1] + 1])[: len(stream)] & (wraps - 1)  # powers of two
    expected[begins] = 0 if whole else number[begins]
    late = np.flatnonzero(number != expected)
    ready[late] = np.maximum(ready[late], np.where(hole[late] == START, NEVER, hole[late]))
    delivery = np.empty_like(ready)
    delivery[order] = running_maximum(ready, begins)
    return delivery


def running_maximum(values: Ints, begins: Bools) -> Ints:
    """The highest value so far in each run of neighbours; begins: where one starts."""
    if (begins[1:] | (values[1:] >= values[:-1])).all():
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
