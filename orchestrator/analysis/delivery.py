"""What of a flow's payload could be handed to the receiving application, and when: in order, without holes.

TCP delivers the stream up to the first byte that is missing (RFC 9293 3.10.7.4). SCTP delivers whole messages, the
ordered ones of each stream in SSN order, streams independent of each other, unordered ones at once (RFC 9260 6.5,
6.6). Head-of-line delay is how long what has arrived waits for what has not: delivery time less arrival.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from .mptcp import data_level
from .native import UNKNOWN, Bools, Ints, Rows
from .view import View, sent_rows

UNORDERED, FIRST, LAST = 4, 2, 1
DATA = 0


@dataclasses.dataclass(frozen=True)
class Delivery:
    """One row a TCP segment with new payload, or a complete SCTP message: arrival and delivery (ns from T0), payload
    bytes. Only what was delivered.
    """

    arrival_ns: Ints
    delivery_ns: Ints
    payload_bytes: Ints


def delivered(view: View, protocol: str) -> Delivery:
    """Everything the receiving application could read, from the receiver's capture."""
    capture = view.point.capture
    parts = []
    table = sent_rows(view, capture.chunks if protocol == "sctp" else capture.segments)
    if protocol == "mptcp":
        parts.append(_mptcp(table[table["payload_bytes"] > 0]))
    else:
        for row in view.data_direction:
            mine = table[table["flow"] == row]
            parts.append(_sctp(mine) if protocol == "sctp" else _tcp(mine))
    empty = np.zeros(0, dtype=np.int64)
    arrival, delivery, payload = (
        np.concatenate([empty, *(getattr(part, field.name) for part in parts)])
        for field in dataclasses.fields(Delivery)
    )
    return Delivery(arrival - view.t0_realtime_ns, delivery - view.t0_realtime_ns, payload)


def _tcp(segments: Rows) -> Delivery:
    fresh = segments[segments["new_bytes"] > 0]
    return _stream(fresh["seq"] - 1, fresh)  # the stream's first byte is number 1


def _mptcp(segments: Rows) -> Delivery:
    """The stream of the data level. Where no mapping was seen (fallback to TCP), that of the one subflow."""
    level = data_level(segments)
    if not level.known.any():
        return _tcp(segments)
    fresh = level.new_bytes > 0
    return _stream(level.start[fresh], segments[fresh])


def _stream(first: Ints, segments: Rows) -> Delivery:
    """A stream of bytes from number 0 on. first: number of each segment's first byte."""
    order = np.argsort(first, kind="stable")
    start = first[order]
    end = start + segments["payload_bytes"][order].astype(np.int64)
    arrival = segments["time_ns"][order]
    if not len(order):
        return Delivery(arrival, arrival, end)
    reach = np.maximum.accumulate(end)
    before = np.concatenate([[0], reach[:-1]])
    whole = _leading(start <= before)
    gained = np.maximum(reach - before, 0)
    return Delivery(arrival[whole], np.maximum.accumulate(arrival)[whole], gained[whole])


def _leading(good: Bools) -> Bools:
    """True up to the first False."""
    return np.logical_and.accumulate(good)


def _sctp(chunks: Rows) -> Delivery:
    fresh = chunks[(chunks["type"] == DATA) & ~chunks["is_retransmission"] & (chunks["tsn"] != UNKNOWN)]
    fresh = fresh[np.argsort(fresh["tsn"], kind="stable")]
    empty = np.zeros(0, dtype=np.int64)
    if not len(fresh):
        return Delivery(empty, empty, empty)
    flags = fresh["flags"]
    first, last = flags & FIRST != 0, flags & LAST != 0
    # a message begins at its B fragment, or wherever the run of TSNs or of fragments breaks
    broken = np.concatenate([[True], np.diff(fresh["tsn"]) != 1])
    begins = broken | first | np.concatenate([[True], last[:-1]])
    starts = np.flatnonzero(begins)
    ends = np.concatenate([starts[1:], [len(fresh)]]) - 1
    complete = first[starts] & last[ends]
    arrival = np.maximum.reduceat(fresh["time_ns"], starts)
    size = np.add.reduceat(fresh["user_bytes"].astype(np.int64), starts)
    stream, ssn = fresh["stream"][starts], fresh["message"][starts]
    unordered = flags[starts] & UNORDERED != 0
    delivery, whole = arrival.copy(), complete.copy()
    for one in np.unique(stream).tolist():
        mine = np.flatnonzero((stream == one) & ~unordered)
        # TSN order is SSN order within a stream; a message that is missing, or not complete, holds up all after it
        expected = np.arange(len(mine)) % 65536
        in_order = _leading(complete[mine] & (ssn[mine] == expected))
        whole[mine] = in_order
        delivery[mine] = np.maximum.accumulate(arrival[mine])
    return Delivery(arrival[whole], delivery[whole], size[whole])
