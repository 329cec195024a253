"""Messages put together from chunks, and when they could be handed to the application: once with the streams that were
used, once as if all messages were in one ordered stream.

Ordered messages of a stream are delivered in the order of their SSN (MID), streams independently of each other,
unordered ones at once (RFC 9260 6.5, 6.6; I-DATA: RFC 8260 2.2). In one stream every message waits for all that were
sent before it, as in TCP.
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from ...core.wire import FIRST, FORWARD_TSN, I_DATA, I_FORWARD_TSN, LAST, UNORDERED
from ..arrays import ascending_order, before, run_begins, search_ascending
from ..native import UNKNOWN, Bools, Ints, Rows
from .transmissions import ChunkColumns

NEVER = np.iinfo(np.int64).max  # A time later than any other: it did not happen within the capture
START = np.iinfo(np.int64).min  # A time before any other: there was nothing to wait for


@dataclasses.dataclass(frozen=True)
class Messages:
    """One row per message of which at least one chunk arrived, in the order of their first TSNs: `one_stream_ns` relies
    on this order. Times: ns as captured. Columns that are expensive or rarely used are computed on first access.

    chunks: the table of chunks. row: index in it of the message's first chunk. whole: see `messages`. fragments: its
    chunks that arrived, each TSN once. arrival_ns: arrival of its last chunk. ready_ns: when later messages could stop
    waiting for it (complete, or abandoned by FORWARD TSN); NEVER if neither happened. hole_ns: when the last gap in the
    TSNs before it was closed (filled or abandoned); START if there was no gap, NEVER if it stayed open.
    """

    chunks: ChunkColumns = dataclasses.field(repr=False)
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
        """The time at which it could be delivered in its stream; meaningful where `delivered`."""
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
        """True if it could be delivered in its stream by the end of the capture."""
        delivered: Bools = self.complete & (self.delivery_ns < NEVER)
        return delivered

    @functools.cached_property
    def one_stream_ns(self) -> Ints:
        """The time at which it could be delivered if everything were one ordered stream; meaningful where
        `delivered_as_one`.
        """
        delivery: Ints = np.maximum.accumulate(np.maximum(self.ready_ns, self.hole_ns))
        return delivery

    @functools.cached_property
    def delivered_as_one(self) -> Bools:
        """True if it could be delivered by the end of the capture if everything were one ordered stream."""
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


def messages(chunks: Rows | ChunkColumns, direction: int | None = None, *, whole: bool = True) -> Messages:
    """The messages of one association in one direction, from its chunks as captured at the receiver.

    direction: that of the data; None: all chunks have the same direction. whole: the capture holds the association's
    beginning, so each stream's first message has number 0 and the first TSN is 0 (TSNs are relative); otherwise the
    first number seen in each stream is taken as its start.
    """
    table = chunks if isinstance(chunks, ChunkColumns) else ChunkColumns(chunks)
    known = table["tsn"] >= (0 if whole else UNKNOWN + 1)
    if direction is not None:
        known &= table["direction"] == direction
    forward = table.of_type(FORWARD_TSN, I_FORWARD_TSN)
    forward = forward[known[forward]]
    released = _Forward(table.rows[forward])
    places = np.flatnonzero(table.is_data & known & ~table["is_retransmission"])
    if len(forward):  # what was given up before it came is a duplicate (RFC 3758 3.6)
        places = places[places < np.append(forward, len(known))[released.place(table["tsn"][places])]]
    places = places[ascending_order(table["tsn"][places])]
    tsn, time, flags = (table[name][places] for name in ("tsn", "time_ns", "flags"))
    count = len(tsn)
    first, last = flags & FIRST != 0, flags & LAST != 0
    interleaved = table["type"][places] == I_DATA
    unordered = flags & UNORDERED != 0
    # make each message's chunks neighbours: I-DATA chunks belong together by stream, U bit and MID, DATA chunks by TSN
    follows = np.zeros(count, dtype=np.bool_)
    if interleaved.any():
        place = _together(table, places, interleaved, first, unordered, follows)
        opens, closes = first[place], last[place]
    else:
        follows[1:] = np.diff(tsn) == 1
        place, opens, closes = np.arange(count), first, last
    starts = np.flatnonzero(~follows | opens | before(closes, True))
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
    # an incomplete message no longer holds up others once FORWARD TSN covers all of it (RFC 3758 3.6): up to its last
    # chunk's TSN; if that chunk did not arrive, up to the TSN after the last one that did. Of DATA that TSN may be
    # another message's: then the rest was given up before it had one
    broken = np.flatnonzero(~complete)
    end = place[ends[order][broken]]
    following = np.append(tsn, NEVER)[np.minimum(end + 1, count)]
    ended = last[end] | (~interleaved[end] & (following == tsn[end] + 1))
    ready = arrival.copy()
    ready[broken] = released.at(tsn[end] + np.where(ended, 0, 1))
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


def _together(
    table: ChunkColumns, places: Ints, interleaved: Bools, first: Bools, unordered: Bools, follows: Bools
) -> Ints:
    """The order in which each message's chunks are neighbours. Also writes to `follows` which chunks continue the
    message of the chunk before them. places: rows of the chunks in the table, in the order of TSNs, as all arguments.
    """
    tsn, stream, mid = (table[name][places] for name in ("tsn", "stream", "message"))
    fsn = table["ppid"][places].astype(np.int64)
    # RFC 8260 2.1: the first fragment is number 0, the next 1. Linux (sctp_chunk_assign_mid()) gives the next 0
    as_linux = bool((interleaved & ~first & (fsn == 0)).any())
    fsn = np.where(first, -1 if as_linux else 0, fsn)
    # the sort is stable, and DATA chunks have equal keys (0): they stay in the order of TSNs
    place: Ints = np.lexsort([np.where(interleaved, key, 0) for key in (fsn, mid, unordered, stream)])
    tsn, stream, mid, fsn, turn = tsn[place], stream[place], mid[place], fsn[place], unordered[place]
    same = (stream[1:] == stream[:-1]) & (mid[1:] == mid[:-1]) & (turn[1:] == turn[:-1])
    follows[1:] = np.where(interleaved[place][1:], same & (np.diff(fsn) == 1), np.diff(tsn) == 1)
    return place


def _of_each(combine: np.ufunc, values: Ints, starts: Ints) -> Ints:
    """The values of each message's chunks combined; `starts`: index of each message's first chunk."""
    combined: Ints = values if len(starts) == len(values) else combine.reduceat(values, starts)
    return combined


class _Forward:
    """The times at which FORWARD TSN chunks told the receiver to stop waiting for TSNs (RFC 3758 3.6)."""

    def __init__(self, chunks: Rows) -> None:
        self.cumulative = np.maximum.accumulate(chunks["tsn"]) if len(chunks) else np.zeros(0, dtype=np.int64)
        self.time_ns = np.append(chunks["time_ns"], NEVER)

    def place(self, tsn: Ints) -> Ints:
        """The number of the first FORWARD TSN that covers each TSN; one more than there are: none does."""
        return np.searchsorted(self.cumulative, tsn)

    def at(self, tsn: Ints) -> Ints:
        """The time at which a FORWARD TSN first covered each TSN; NEVER if none did."""
        return self.time_ns[self.place(tsn)]

    def before(self, tsn: Ints, head: Ints, *, whole: bool) -> Ints:
        """The time at which the last gap below each `head` was closed: START if there was none, NEVER if it stayed.
        tsn: all that arrived, ascending.
        """
        after_hole = tsn[np.concatenate([[whole and tsn[0] > 0], np.diff(tsn) > 1])]
        closed = np.concatenate([[START], self.at(after_hole - 1)])
        return closed[search_ascending(after_hole, head, side="right")]


def _in_streams(stream: Rows, number: Ints, wraps: Ints, ready: Ints, hole: Ints, whole: bool) -> Ints:
    """Delivery times of ordered messages, given in the order of their TSNs, which is also that of their message numbers
    (SSN, MID) within each stream.

    wraps: how many message numbers there are, a power of two. hole: when the last gap below each was closed; it counts
    only where a message number is missing. A stream that begins at 0 again although no TSN is missing was reset (RFC
    6525 5.2.2).
    """
    order = ascending_order(stream)  # 16 bit: a radix sort
    stream, number, wraps, ready, hole = stream[order], number[order], wraps[order], ready[order], hole[order]
    begins = run_begins(stream)
    expected = before(number + 1, 0) & (wraps - 1)
    expected[begins] = 0 if whole else number[begins]
    late = np.flatnonzero((number != expected) & ((number != 0) | (hole != START)))
    ready[late] = np.maximum(ready[late], np.where(hole[late] == START, NEVER, hole[late]))
    delivery = np.empty_like(ready)
    delivery[order] = running_maximum(ready, begins)
    return delivery


def running_maximum(values: Ints, begins: Bools) -> Ints:
    """The running maximum within each group of neighbouring values; begins: where a group starts.

    One pass of maximum.accumulate over all groups: each group is lifted above the one before it by a constant, which is
    taken off afterwards. NEVER would overflow and stands as the group's largest value meanwhile. If the lifted values
    do not fit into 64 bits, ranks take their place.
    """
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
