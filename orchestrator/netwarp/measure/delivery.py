"""Computes which payload could be delivered to the receiving application, and when: in order, without gaps; and the
delays of messages from the instant they were due to their delivery.

TCP delivers the stream up to the first byte that is missing (RFC 9293 3.10.7.4) or that its kernel did not accept. SCTP
delivers whole messages: ordered ones of each stream in the order of their SSNs, streams independently of each other,
unordered ones at once (RFC 9260 6.5, 6.6). The head-of-line delay of data is its delivery time minus its arrival time.

A kernel does not accept some segments that a capture shows as new data in order: those after a TCP reset or MPTCP's
fast close, and those that reordering made older than a time stamp already seen (PAWS, RFC 7323 5.3). A sender that is
about to stop does not retransmit them, so only the receiver's answers show the drop.

A reset is accepted only if its sequence number is the next one expected or the right edge of the data that arrived (RFC
5961 3.2 and net/ipv4/tcp_input.c, tcp_validate_incoming(): Linux accepts a RST at the right edge of what it has SACKed,
even while an earlier segment is still missing, so only where the ends agreed on SACK); otherwise it is answered by a
challenge ACK. Linux reads the MPTCP options of a reset only if it accepts the reset (tcp_reset()).

The wire knows SCTP's messages. Those of TCP and MPTCP are the schedule's, told by their bytes; without a schedule, each
segment with bytes that were never sent before is one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from ..captures.capture import rows_where
from ..captures.mptcp import DATA_ACK, MAPPED, data_level, numbered
from ..captures.mptcp.subflows import first_number_of, subflow_groups
from ..captures.native import Bools, Floats, Ints, Rows
from ..captures.sctp.messages import Messages, messages
from ..captures.tcp.columns import SACK_PERMITTED
from ..core.types import Flow
from ..core.wire import ABORT, ACK, FIN, FIRST, MP_CAPABLE, MP_FASTCLOSE, MP_TCPRST, RST, SHUTDOWN_ACK, SYN
from .datagram_flows import DatagramFlow
from .flow_packets import FlowPackets
from .taken_chunks import taken_chunks
from .timetable import NEVER, Timetable


@dataclasses.dataclass(frozen=True)
class Delivery:
    """One row per TCP segment with new payload, or per complete SCTP message: arrival and delivery (ns from T0),
    payload bytes, SCTP's stream (otherwise 0). Only data that was delivered.
    """

    arrival_ns: Ints
    delivery_ns: Ints
    payload_bytes: Ints
    stream: Ints


def delivered(receiver: FlowPackets, protocol: str) -> Delivery:
    """All data that the receiving application could read, from the receiver's capture."""
    if protocol == "mptcp":
        segments, acks = accepted_segments(receiver, protocol), _data_acks(receiver)
        parts = [
            _mptcp(_of_flows(segments, flows), _of_flows(acks, flows), _first_number(receiver, flows))
            for flows in _connections(receiver)
        ]
    elif protocol == "sctp":
        parts = [_sctp(delivered_messages(receiver, row)) for row in receiver.data_direction]
    else:
        segments = accepted_segments(receiver, protocol)
        parts = [_tcp(rows_where(segments, segments["flow"] == row)) for row in receiver.data_direction]
    empty = np.zeros(0, dtype=np.int64)
    arrival, delivery, payload, stream = (
        np.concatenate([empty, *(getattr(part, field.name) for part in parts)])
        for field in dataclasses.fields(Delivery)
    )
    return Delivery(arrival - receiver.t0_realtime_ns, delivery - receiver.t0_realtime_ns, payload, stream)


def _of_flows(rows: Rows, flows: Sequence[int]) -> Rows:
    return rows[np.isin(rows["flow"], flows)]


def _tcp(segments: Rows) -> Delivery:
    fresh = rows_where(segments, segments["new_bytes"] > 0)
    return _stream(fresh["seq"] - 1, fresh, fresh["time_ns"])  # the stream's first byte is number 1


def _data_acks(receiver: FlowPackets) -> Rows:
    """The receiver's segments with a DATA_ACK, in the order of the capture."""
    acks = receiver.rows(receiver.point.capture.segments, back=True)
    return acks[acks["options"] & DATA_ACK > 0]


def _first_number(receiver: FlowPackets, flows: Sequence[int]) -> int | None:
    """The data sequence number of a connection's first byte, as the key of its sender gives it; None: not captured."""
    table = receiver.point.capture.mptcp_options
    for row in table[np.isin(table["flow"], flows) & (table["subtype"] == MP_CAPABLE) & (table["version"] > 0)]:
        sends = receiver.data_direction.get(int(row["flow"]))
        key = int(row["key"] if int(row["direction"]) == sends else row["peer_key"])
        if key and sends is not None:
            return first_number_of(key)
    return None


def _mptcp(segments: Rows, acks: Rows, first_number: int | None) -> Delivery:
    """Delivery at MPTCP's data level. A subflow passes a segment on only when nothing before it is missing on that
    subflow (RFC 8684 3.3.1), even if the data level has no gap. If no mapping was seen, or none any more of the only
    subflow (fallback to TCP, RFC 8684 3.7), the stream of the single subflow counts.

    first_number: of the connection's first byte, which need not have come; None: that of the first that came. acks: the
    receiver's segments with a DATA_ACK. Linux drops data that a subflow passes on out of order and beyond the
    connection's receive window (net/mptcp/protocol.c, mptcp_data_queue_ofo(), counter NoDSSInWindow), although that
    subflow has acknowledged it. If the last DATA_ACK still asks for a byte that was passed on before it, that byte was
    dropped, and nothing from it on was read.
    """
    mapped = segments["options"] & MAPPED > 0
    alone = len(np.unique(segments["flow"])) < 2
    if not mapped.any() or (alone and (segments["seq"][~mapped] > segments["seq"][mapped].max()).any()):
        return _tcp(segments)
    handed, when = [], []
    for row in np.unique(segments["flow"]).tolist():
        fresh = np.flatnonzero((segments["flow"] == row) & (segments["new_bytes"] > 0))
        whole, _ = _in_order(segments["seq"][fresh] - 1, segments[fresh])
        handed.append(fresh[whole])
        when.append(np.maximum.accumulate(segments["time_ns"][fresh[whole]]))
    rows, ready = np.concatenate(handed), np.concatenate(when)
    order = np.lexsort((rows, ready))
    rows, ready = rows[order], ready[order]
    start = data_level(segments).start[rows]
    known = np.flatnonzero(segments["options"][rows] & MAPPED)
    if first_number is not None and len(known):  # what came first need not be the first: 64-bit numbers wrap
        lowest = (int(segments["dsn"][rows[known[0]]]) - int(start[known[0]]) - first_number) % (1 << 64)
        start = start + (lowest if lowest < 1 << 63 else 0)
    first = data_level(numbered(segments)[rows]).new_bytes > 0
    keep = first & (start < _dropped_from(start, segments[rows], ready, acks))
    return _stream(start[keep], segments[rows[keep]], ready[keep])


def _dropped_from(start: Ints, segments: Rows, ready_ns: Ints, acks: Rows) -> int:
    """The number (counted as in `start`) of the first byte that was passed on and dropped; NEVER if none was."""
    if not len(acks):
        return NEVER
    asked = start + (acks["dsn"][-1] - segments["dsn"])  # 64-bit numbers wrap, their distances do not
    holds = (segments["options"] & MAPPED > 0) & (asked >= start) & (asked < start + segments["payload_bytes"])
    if not holds.any() or (ready_ns[holds] >= acks["time_ns"][-1]).any():
        return NEVER
    return int(asked[holds][0])


def _stream(first: Ints, segments: Rows, ready_ns: Ints) -> Delivery:
    """Delivery of a stream of bytes from number 0 on. first: number of each segment's first byte; ready_ns: the time
    from which each segment can be delivered if all bytes before it can.
    """
    whole, gained = _in_order(first, segments)
    alone = np.zeros(len(whole), dtype=np.int64)
    return Delivery(segments["time_ns"][whole], np.maximum.accumulate(ready_ns[whole]), gained, alone)


def _in_order(first: Ints, segments: Rows) -> tuple[Ints, Ints]:
    """The segments of a stream up to its first gap, in the order of the stream, and the number of bytes that each adds
    to it.
    """
    order = np.argsort(first, kind="stable")
    end = first[order] + segments["payload_bytes"][order].astype(np.int64)
    reach = np.maximum.accumulate(np.concatenate([[0], end]))
    whole = np.logical_and.accumulate(first[order] <= reach[:-1])
    return order[whole], np.diff(reach)[whole]


def aborted_ns(packets: FlowPackets, row: int) -> int:
    """The time of the data sender's first ABORT in flow `row`, or NEVER. An ABORT ends the association at once (RFC
    9260 9.1): packets still queued on a slower path arrive at no association, and packets that still reach the sender
    are answered by further, equal ABORTs (8.4).
    """
    table = packets.point.capture.chunks
    aborts = table[(table["flow"] == row) & (table["type"] == ABORT)]
    aborts = aborts[aborts["direction"] == packets.data_direction[row]]
    return int(aborts["time_ns"].min(initial=packets.gone_ns.get(row, NEVER)))


def shut_ns(receiver: FlowPackets, row: int) -> int:
    """The time of the receiver's first SHUTDOWN ACK in flow `row`, or NEVER. From then on it takes no data (RFC 9260
    9.2): what its peer has given up may still be on a slower path.
    """
    table = receiver.point.capture.chunks
    mine = (table["flow"] == row) & (table["type"] == SHUTDOWN_ACK)
    mine &= table["direction"] != receiver.data_direction[row]
    return int(table["time_ns"][mine].min(initial=NEVER))


def delivered_messages(receiver: FlowPackets, row: int) -> Messages:
    """The messages that the receiver took in flow `row` before its sender's ABORT and its own SHUTDOWN ACK."""
    chunks = taken_chunks(receiver, row)
    until = min(aborted_ns(receiver, row), shut_ns(receiver, row))
    return messages(rows_where(chunks, chunks["time_ns"] <= until))


def _sctp(sent: Messages) -> Delivery:
    whole = sent.delivered
    return Delivery(sent.arrival_ns[whole], sent.delivery_ns[whole], sent.payload_bytes[whole], sent.stream[whole])


def accepted_segments(receiver: FlowPackets, protocol: str) -> Rows:
    """The segments with payload that the receiving kernel can have delivered, in the order of the capture."""
    segments = receiver.sent_segments
    segments = rows_where(segments, _before_resets(receiver, segments))
    if protocol == "mptcp":
        return rows_where(segments, segments["payload_bytes"] > 0)
    keep = np.zeros(len(segments), dtype=np.bool_)
    table = receiver.point.capture.segments
    for row, sends in receiver.data_direction.items():
        mine = segments["flow"] == row
        answers = (table["flow"] == row) & (table["direction"] != sends)
        if row in receiver.gone_ns:
            answers &= table["time_ns"] < receiver.gone_ns[row]
        sent = rows_where(receiver.sent_segments, receiver.sent_segments["flow"] == row)
        keep[mine] = _taken(rows_where(segments, mine), rows_where(table, answers), sent)
    return rows_where(segments, keep)


def _before_resets(receiver: FlowPackets, segments: Rows) -> Bools:
    """The sender's segments (in the order of the capture) that arrived while their connection still
    accepted data.
    """
    rows = np.unique(segments["flow"][segments["flags"] & RST > 0]).tolist()
    syns = receiver.point.capture.segments
    syns = syns[syns["flags"] & SYN > 0]
    resets = []
    for row in rows:
        sack = (syns["options"][syns["flow"] == row] & SACK_PERMITTED > 0).all()
        resets += list(_taken_reset(rows_where(segments, segments["flow"] == row), bool(sack)))
    closed = _fast_closed(receiver, resets)
    for row, moment in receiver.gone_ns.items():
        closed[row] = min(closed.get(row, moment), moment)
    for reset in resets:
        row, moment = int(reset["flow"]), int(reset["time_ns"])
        closed[row] = min(closed.get(row, moment), moment)
    keep = np.ones(len(segments), dtype=np.bool_)
    for row, moment in closed.items():
        keep &= (segments["flow"] != row) | (segments["time_ns"] <= moment)
    return keep


def _taken_reset(segments: Rows, sack: bool) -> Rows:
    """The first reset of a connection or subflow that the receiver accepted: one row, or none. sack: agreed on."""
    for at in np.flatnonzero(segments["flags"] & RST).tolist():
        before, number = segments[:at], int(segments["seq"][at])
        end = before["seq"] + before["payload_bytes"].astype(np.int64) + (before["flags"] & FIN)
        order = np.argsort(before["seq"], kind="stable")
        reach: Ints = np.maximum.accumulate(np.concatenate([[1], end[order]]))  # the stream's first byte is number 1
        holes = np.flatnonzero(before["seq"][order] > reach[:-1])
        awaited = int(reach[holes[0]] if len(holes) else reach[-1])
        if number == awaited or (sack and number == int(reach[-1])):
            return segments[at : at + 1]
    return segments[:0]


def _fast_closed(receiver: FlowPackets, resets: Sequence[Rows]) -> dict[int, int]:
    """For each subflow, the time at which the receiver closed it because the sender aborted the whole MPTCP connection
    (RFC 8684 3.5).

    Linux closes the other subflows from a work queue and sends a reset with MP_TCPRST on each. Data that arrive between
    the MP_FASTCLOSE and that reset are still read. Without such a reset: the arrival of the MP_FASTCLOSE.
    """
    options = receiver.point.capture.mptcp_options
    packets = [int(reset["packet"]) for reset in resets]
    aborts = options[(options["subtype"] == MP_FASTCLOSE) & np.isin(options["packet"], packets)]
    closed = {}
    for flows in _connections(receiver) if len(aborts) else ():
        of_connection = aborts["time_ns"][np.isin(aborts["flow"], flows)]
        for row in flows if len(of_connection) else ():
            aborted, sends = int(of_connection.min()), receiver.data_direction[row]
            answers = options[(options["flow"] == row) & (options["subtype"] == MP_TCPRST)]
            answers = answers[(answers["direction"] != sends) & (answers["time_ns"] >= aborted)]
            closed[row] = int(answers["time_ns"][0]) if len(answers) else aborted
    return closed


def _connections(receiver: FlowPackets) -> list[list[int]]:
    """The rows of the flow table of each MPTCP connection. A subflow whose connection is not known belongs to all there
    is where that is one.
    """
    groups = [[row for row in group.flows if row in receiver.data_direction]
              for group in subflow_groups(receiver.point.capture) if group.complete]  # fmt: skip
    groups = [rows for rows in groups if rows]
    return groups if len(groups) > 1 else [list(receiver.data_direction)]


def _taken(data: Rows, back: Rows, sent: Rows) -> Bools:
    """The segments with payload of a connection that the receiving kernel can have delivered, judged by its answers.

    data: the sender's segments until the connection was reset, RST and empty ones included; back: the receiver's; sent:
    all of the sender's; each in the order of the receiver's own capture. False from the first segment on that the
    kernel answered as belonging to no connection (a RST without ACK, RFC 9293 3.10.7.1). Also False from the byte on
    that the receiver's last acknowledgement still asks for, if it had arrived before and was not sent again.
    """
    keep: Bools = (data["payload_bytes"] > 0) & (data["packet"] < _first_unknown(sent, back))
    acknowledged = np.flatnonzero((back["flags"] & (ACK | RST)) == ACK)
    if not len(acknowledged):
        return keep
    last = back[acknowledged[-1]]
    awaited = data[keep & (data["seq"] <= last["ack"]) & (data["seq"] + data["payload_bytes"] > last["ack"])]
    if len(awaited) and (awaited["packet"] < last["packet"]).all():
        keep &= data["seq"] < last["ack"]
    return keep


def _first_unknown(sent: Rows, back: Rows) -> int:
    """The first packet that the receiver's kernel answered as belonging to no connection; NEVER if there is none."""
    answers = back[(back["flags"] & (RST | ACK)) == RST]
    if not len(answers):
        return NEVER
    asked = sent[((sent["flags"] & RST) == 0) & (sent["packet"] < answers["packet"][0])]
    return int(asked["packet"][-1]) if len(asked) else 0


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


def datagram_messages(datagrams: DatagramFlow, timetable: Timetable) -> SentMessages:
    """The messages of netwarp's own UDP, each a datagram, delivered when it arrives. One that the sender's host could
    not send (no route, while an interface is down) was due as well.
    """
    numbers = datagrams.sent.number
    count = int(numbers.max(initial=-1)) + 1
    due = timetable.due(count)
    if due is None:
        return SentMessages(datagrams.sent.t_ns, datagrams.arrived_ns)
    delivered = np.full(count, NEVER, dtype=np.int64)
    delivered[numbers] = datagrams.arrived_ns
    return SentMessages(due, delivered)


def stream_messages(flow: Flow, sender: FlowPackets, delivery: Delivery, timetable: Timetable) -> SentMessages | None:
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
    if timetable.timed:
        end = timetable.ends(int(end.max()))
        due = timetable.due(len(end))
    else:
        order = np.argsort(end, kind="stable")
        due, end = (rows["time_ns"][fresh].astype(np.int64) - sender.t0_realtime_ns)[order], end[order]
    reach = np.cumsum(delivery.payload_bytes)
    place = np.searchsorted(reach, end)
    delivered = np.full(len(end), NEVER, dtype=np.int64)
    delivered[place < len(reach)] = delivery.delivery_ns[place[place < len(reach)]]
    return SentMessages(due, delivered)


def messages_of(flow: Flow, sender: FlowPackets, receiver: FlowPackets, timetable: Timetable) -> SentMessages | None:
    """The messages of an SCTP flow with one association; None without one."""
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
    due = timetable.due(len(begun))
    return SentMessages(first_ns if due is None else due, delivered)


def _numbers_unknown(flow: Flow) -> bool:
    """True if the n-th message that was sent may not be the n-th that was due: one that is older than its lifetime is
    dropped before it has a TSN (net/sctp/outqueue.c), and schedulers send messages of several streams out of turn.
    """
    options = flow.sender_options
    reordered = options.get("scheduler", "fcfs") != "fcfs" and int(options.get("streams") or 1) > 1
    return options.get("lifetime_ns") is not None or reordered
