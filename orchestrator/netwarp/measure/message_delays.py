"""Delays of SCTP messages from the instant they were due to their delivery, and the messages that were never
delivered.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from ..captures.native import Floats, Ints
from ..captures.sctp.messages import messages
from ..core.types import Flow
from ..core.wire import FIRST
from .delivery import delivered_messages
from .flow_packets import FlowPackets

NEVER = np.iinfo(np.int64).max


@dataclasses.dataclass(frozen=True)
class Messages:
    """One row per message of which anything left the sender, sorted by TSN.

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
    sent = messages(sender.sent_chunks)
    # also one of which the sender gave up the rest unsent: it has begun
    begun = sent.row[sent.chunks["flags"][sent.row] & FIRST != 0]
    if not len(begun):
        return None
    (row,) = receiver.data_direction
    arrived = delivered_messages(receiver, row)
    tsn, there = sent.chunks["tsn"][begun], arrived.delivered
    place = np.searchsorted(tsn, arrived.tsn[there])
    known = place < len(tsn)
    known[known] &= tsn[place[known]] == arrived.tsn[there][known]
    delivered = np.full(len(tsn), NEVER, dtype=np.int64)
    delivered[place[known]] = arrived.delivery_ns[there][known] - receiver.t0_realtime_ns
    if _numbers_unknown(flow):
        return Messages(None, delivered)
    first_ns: Ints = sent.chunks["time_ns"][begun].astype(np.int64) - sender.t0_realtime_ns
    due = _due(flow, np.arange(len(begun)), connected_ns)
    return Messages(first_ns if due is None else due, delivered)


def _numbers_unknown(flow: Flow) -> bool:
    """True if the n-th message that was sent may not be the n-th that was due: one that is older than its lifetime is
    dropped before it has a TSN (net/sctp/outqueue.c), and schedulers send messages of several streams out of turn.
    """
    options = flow.sender_options
    reordered = options.get("scheduler", "fcfs") != "fcfs" and int(options.get("streams") or 1) > 1
    return options.get("lifetime_ns") is not None or reordered


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
