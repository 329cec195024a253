"""Delays of messages from the instant they were due to their delivery, and the messages that were never delivered.

The wire knows SCTP's messages. Those of TCP and MPTCP are the schedule's, told by their bytes; without a schedule, each
segment with bytes that were never sent before is one.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from ..captures.mptcp import data_level
from ..captures.native import Floats, Ints
from ..captures.sctp.messages import messages
from ..core.types import Flow
from ..core.wire import FIRST
from .delivery import Delivery, delivered_messages
from .flow_packets import FlowPackets

NEVER = np.iinfo(np.int64).max


@dataclasses.dataclass(frozen=True)
class SentMessages:
    """One row per message of which anything left the sender, in the order of sending.

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

    def longest_s(self, until_ns: int) -> float | None:
        """The longest time from due to delivery. None: not known, there is no message, or the longest is that of a
        message that had not been delivered by until_ns.
        """
        delays = self.delays_s()
        if self.due_ns is None or delays is None or not len(delays):
            return None
        waiting_ns = until_ns - self.due_ns[self.delivered_ns == NEVER]
        longest = float(delays.max())
        return None if waiting_ns.max(initial=0) / 1e9 > longest else longest

    def first_since(self, since_ns: int) -> int | None:
        """The delivery (ns from T0) of the first message due at since_ns or later; None: none, or not known."""
        if self.due_ns is None or not (self.due_ns >= since_ns).any():
            return None
        at_ns = int(self.delivered_ns[np.argmin(np.where(self.due_ns >= since_ns, self.due_ns, NEVER))])
        return None if at_ns == NEVER else at_ns

    def late(self, limit_ns: int, end_ns: int) -> int | None:
        """The number of messages that were delivered more than limit_ns after they were due, or not by then within
        the window; None: not known.
        """
        if self.due_ns is None:
            return None
        by = np.minimum(self.delivered_ns, end_ns)
        return int((by - self.due_ns > limit_ns).sum())


def stream_messages(
    flow: Flow, sender: FlowPackets, delivery: Delivery, connected_ns: int | None
) -> SentMessages | None:
    """The messages of a flow with one TCP or MPTCP connection; None without one, or where not every segment's place in
    MPTCP's stream is known. delivery: of the stream, in its order.
    """
    rows = sender.data_segments
    if not len(rows) or (flow.protocol == "tcp" and len(sender.data_direction) != 1):
        return None
    begin, fresh = rows["seq"].astype(np.int64) - 1, rows["new_bytes"] > 0  # the stream's first byte is number 1
    if flow.protocol == "mptcp":
        level = data_level(rows)
        begin, fresh = level.start, level.new_bytes > 0
        if not level.known.all():
            return None
    end = (begin + rows["payload_bytes"])[fresh]
    due: Ints | None
    if flow.sender_options.get("interval_ns") is not None and connected_ns is not None:
        sizes = np.array(str(flow.sender_options.get("burst_bytes") or flow.message_bytes).split(","), dtype=np.int64)
        sizes = np.resize(sizes, len(sizes) * (1 + int(end.max()) // int(sizes.sum())))
        ends = np.cumsum(sizes)
        end = ends[ends - sizes < end.max()]
        due = _due(flow, np.arange(len(end)), connected_ns)
    else:
        order = np.argsort(end, kind="stable")
        due, end = (rows["time_ns"][fresh].astype(np.int64) - sender.t0_realtime_ns)[order], end[order]
    reach = np.cumsum(delivery.payload_bytes)
    place = np.searchsorted(reach, end)
    delivered = np.full(len(end), NEVER, dtype=np.int64)
    delivered[place < len(reach)] = delivery.delivery_ns[place[place < len(reach)]]
    return SentMessages(due, delivered)


def messages_of(
    flow: Flow, sender: FlowPackets, receiver: FlowPackets, connected_ns: int | None
) -> SentMessages | None:
    """The messages of an SCTP flow with one association; None without one. connected_ns: when the sender's app was
    connected, from T0.
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
        return SentMessages(None, delivered)
    first_ns: Ints = sent.chunks["time_ns"][begun].astype(np.int64) - sender.t0_realtime_ns
    due = _due(flow, np.arange(len(begun)), connected_ns)
    return SentMessages(first_ns if due is None else due, delivered)


def _numbers_unknown(flow: Flow) -> bool:
    """True if the n-th message that was sent may not be the n-th that was due: one that is older than its lifetime is
    dropped before it has a TSN (net/sctp/outqueue.c), and schedulers send messages of several streams out of turn.
    """
    options = flow.sender_options
    reordered = options.get("scheduler", "fcfs") != "fcfs" and int(options.get("streams") or 1) > 1
    return options.get("lifetime_ns") is not None or reordered


def _due(flow: Flow, numbers: Ints, connected_ns: int | None) -> Ints | None:
    """The due time of each message by its number: burst k is due at the k-th instant start + n * interval at or after
    the connection was established (as apps/traffic/schedule.h). None without a schedule.
    """
    interval = flow.sender_options.get("interval_ns")
    if interval is None or connected_ns is None:
        return None
    step = int(interval)
    first = flow.start_ns + -(-max(0, connected_ns - flow.start_ns) // step) * step
    burst = len(str(flow.sender_options.get("burst_bytes", "")).split(","))
    return first + numbers // burst * step
