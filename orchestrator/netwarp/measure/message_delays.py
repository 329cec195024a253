"""Delays of SCTP messages from the instant they were due to their delivery, and the messages that were never
delivered.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from ..captures.native import UNKNOWN, Floats, Ints
from ..core.types import Flow
from ..core.wire import DATA
from .flow_packets import FlowPackets

UNORDERED, FIRST, LAST = 4, 2, 1
NEVER = np.iinfo(np.int64).max


@dataclasses.dataclass(frozen=True)
class Messages:
    """One row per message that left the sender, sorted by TSN.

    due_ns: when it was due by the flow's schedule; without a schedule, when it was first sent; None: the wire does not
    tell which message of the schedule it is. delivered_ns: when the receiving application could read it (NEVER: it
    could not). Both in ns from T0.
    """

    due_ns: Ints | None
    delivered_ns: Ints

    def delays_s(self) -> Floats | None:
        """Delays of the delivered messages; None: not known."""
        if self.due_ns is None:
            return None
        there = self.delivered_ns != NEVER
        delays: Floats = (self.delivered_ns[there] - self.due_ns[there]) / 1e9
        return delays

    def late(self, limit_ns: int, end_ns: int) -> int | None:
        """The number of messages that were delivered more than limit_ns after they were due, or not by then within
        the window; None: not known.
        """
        if self.due_ns is None:
            return None
        by = np.minimum(self.delivered_ns, end_ns)
        return int((by - self.due_ns > limit_ns).sum())


def messages_of(flow: Flow, sender: FlowPackets, receiver: FlowPackets, connected_ns: int | None) -> Messages | None:
    """The messages of a flow with one association; None without one. connected_ns: when the sender's app was connected,
    from T0.
    """
    if flow.protocol != "sctp" or len(sender.data_direction) != 1 or len(receiver.data_direction) != 1:
        return None
    sent = _whole(sender)
    if not len(sent.end):
        return None
    arrived = _whole(receiver)
    delivered = np.full(len(sent.end), NEVER, dtype=np.int64)
    place = np.searchsorted(sent.begin, arrived.begin)
    known = place < len(sent.begin)
    known[known] &= sent.begin[place[known]] == arrived.begin[known]
    delivered[place[known]] = _in_order(arrived)[known]
    if _numbers_unknown(flow):
        return Messages(None, delivered)
    due = _due(flow, sent.number, connected_ns)
    return Messages(sent.first_ns if due is None else due, delivered)


def _numbers_unknown(flow: Flow) -> bool:
    """True if the n-th message that was sent may not be the n-th that was due: one that is older than its lifetime is
    dropped before it has a TSN (net/sctp/outqueue.c), and schedulers send messages of several streams out of turn.
    """
    options = flow.sender_options
    reordered = options.get("scheduler", "fcfs") != "fcfs" and int(options.get("streams") or 1) > 1
    return options.get("lifetime_ns") is not None or reordered


@dataclasses.dataclass(frozen=True)
class _Whole:
    """Complete messages at one point: first and last TSN, time of the first and of the last arrival, stream, U flag.

    number: how many messages had begun before it, also those of which fragments are missing (given up by the sender).
    """

    number: Ints
    begin: Ints
    end: Ints
    first_ns: Ints
    last_ns: Ints
    stream: Ints
    ordered: Ints


def _whole(view: FlowPackets) -> _Whole:
    chunks = view.sent_chunks
    fresh = chunks[(chunks["type"] == DATA) & ~chunks["is_retransmission"] & (chunks["tsn"] != UNKNOWN)]
    fresh = fresh[np.argsort(fresh["tsn"], kind="stable")]
    if not len(fresh):
        none = np.zeros(0, dtype=np.int64)
        return _Whole(none, none, none, none, none, none, none)
    tsn, flags = fresh["tsn"].astype(np.int64), fresh["flags"]
    t_ns = fresh["time_ns"] - view.t0_realtime_ns
    first, last = flags & FIRST != 0, flags & LAST != 0
    begins = np.concatenate([[True], np.diff(tsn) != 1]) | first | np.concatenate([[True], last[:-1]])
    starts = np.flatnonzero(begins)
    ends = np.concatenate([starts[1:], [len(fresh)]]) - 1
    keep = first[starts] & last[ends]
    return _Whole(
        number=(np.cumsum(first)[starts] - 1)[keep],
        begin=tsn[starts][keep],
        end=tsn[ends][keep],
        first_ns=np.minimum.reduceat(t_ns, starts)[keep],
        last_ns=np.maximum.reduceat(t_ns, starts)[keep],
        stream=fresh["stream"][starts][keep].astype(np.int64),
        ordered=(flags[starts][keep] & UNORDERED == 0).astype(np.int64),
    )


def _in_order(messages: _Whole) -> Ints:
    """Delivery: an ordered message waits for those before it in its stream (RFC 9260 6.6), which have smaller TSNs."""
    delivered = messages.last_ns.copy()
    for stream in np.unique(messages.stream).tolist():
        mine = np.flatnonzero((messages.stream == stream) & (messages.ordered == 1))
        delivered[mine] = np.maximum.accumulate(messages.last_ns[mine])
    return delivered


def _due(flow: Flow, numbers: Ints, connected_ns: int | None) -> Ints | None:
    """The due time of each message by its number: burst k is due at the k-th instant start + n * interval at or after
    the connection was established (as apps/traffic/schedule.h).
    """
    interval = flow.sender_options.get("interval_ns")
    if interval is None or connected_ns is None:
        return None
    step = int(interval)
    first = flow.start_ns + -(-max(0, connected_ns - flow.start_ns) // step) * step
    burst = len(str(flow.sender_options.get("burst_bytes", "")).split(","))
    return first + numbers // burst * step
