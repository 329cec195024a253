"""The data packets that a sender sent and the acknowledgements it received, in the same columns for TCP and SCTP; from
them the times at which arrived data had been sent, the bytes outstanding, and the packets of each round trip.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np

from ..captures.capture import rows_where
from ..captures.native import NONE, Bools, Ints, Rows
from ..core.types import Flow
from ..core.wire import ACK
from .flow_packets import FlowPackets


def data_units(packets: FlowPackets, protocol: str) -> tuple[Rows, str]:
    """The rows that carry payload from the flow's sender, and the name of the column with their numbers (TSN, sequence
    number), which are the same at both ends.
    """
    if protocol == "sctp":
        return packets.data_chunks, "tsn"
    return packets.data_segments, "seq"


def unit_paths(packets: FlowPackets, rows: Rows) -> Ints:
    """The path of each row: index into `PathNames.names`."""
    return np.array([packets.path_index[path] for path in rows["path"].tolist()], dtype=np.int64)


def same_connections(sender: FlowPackets, receiver: FlowPackets) -> dict[int, int]:
    """Row of the receiver's flow table -> row of the sender's: of each connection that both captures saw, recognised by
    its ports and its initiator's first number. Numbers of different connections have nothing to do with each other.
    """
    if len(sender.data_direction) == len(receiver.data_direction) == 1:
        return dict(zip(receiver.data_direction, sender.data_direction, strict=True))
    known = {_connection(sender, row): row for row in sender.data_direction}
    there = ((row, known.get(_connection(receiver, row))) for row in receiver.data_direction)
    return {row: here for row, here in there if here is not None}


def _connection(packets: FlowPackets, row: int) -> tuple[int, int, int]:
    flow = packets.point.capture.flows[row]
    return int(flow["port"][0]), int(flow["port"][1]), int(flow["base"][0])


def arrival_of_first_sent_since(
    sender: FlowPackets, receiver: FlowPackets, protocol: str, candidates: Bools, since_ns: int
) -> int | None:
    """Arrival (ns from T0) of the first candidate that was sent at or after `since_ns`; None: there is none.

    candidates: one bool per packet of `receiver.data`. The sending time of a packet is the last time, before its
    arrival, at which all of its TSNs (of a TCP subflow: sequence numbers) were sent on its path. Both captures count
    from the same T0.
    """
    packets = receiver.point.capture.packets
    rows = np.flatnonzero(receiver.mask(packets))  # of the packets of receiver.data, in the same order
    arrived, column = data_units(receiver, protocol)
    sent, _ = data_units(sender, protocol)
    sent_ns, sent_path = sent["time_ns"] - sender.t0_realtime_ns, unit_paths(sender, sent)
    connections = same_connections(sender, receiver)
    for number in np.flatnonzero(candidates).tolist():
        at_ns, path = int(receiver.data.t_ns[number]), int(receiver.data.path[number])
        here = connections.get(int(packets["flow"][rows[number]]), NONE)
        before = (sent_path == path) & (sent_ns <= at_ns) & (sent["flow"] == here)
        times = [
            sent_ns[before & (sent[column] == unit)] for unit in arrived[column][arrived["packet"] == rows[number]]
        ]
        if times and all(map(len, times)) and min(int(sent_at[-1]) for sent_at in times) >= since_ns:
            return at_ns
    return None


@dataclasses.dataclass(frozen=True)
class Sending:
    """Data packets captured at their sender, and the acknowledgements it received; times in ns from T0.

    One row per data packet in `packet` ... `again`, one row per acknowledgement in `ack_packet`, `ack_ns`, `acked`;
    both in the order of the capture, on which the searches below rely. begin, end: numbers of the packet's first and
    last unit (TCP: bytes, SCTP: TSNs), end exclusive. again: whether the packet carries something sent before. acked:
    the next number expected. packet, ack_packet: index in the capture; it orders what has the same time.
    """

    packet: Ints
    sent_ns: Ints
    begin: Ints
    end: Ints
    payload_bytes: Ints
    again: Bools
    ack_packet: Ints
    ack_ns: Ints
    acked: Ints

    def loss_events(self) -> Ints:
        """Row of the first packet of each loss event, for each of which the window is halved once.

        An event starts at a retransmission. The next one starts at the first retransmission after everything sent
        before the event's start has been acknowledged cumulatively (RFC 6582 3.2, RFC 6675 5, RFC 9260 7.2.4).
        """
        highest = np.maximum.accumulate(self.end)
        known = np.maximum.accumulate(self.acked) if len(self.acked) else self.acked
        places = np.flatnonzero(self.again)
        events: list[int] = []
        packets = self.packet[places]
        number = 0
        while number < len(places):
            begin = int(places[number])
            events.append(begin)
            done = int(np.searchsorted(known, highest[begin]))
            if done == len(known):
                break
            # if the data was already acknowledged when it was resent, the event ends immediately
            number = max(number + 1, int(np.searchsorted(packets, self.ack_packet[done])))
        return np.array(events, dtype=np.int64)


def _only_connection(flow: Flow, sender: FlowPackets) -> tuple[Rows, Ints, Ints, Rows] | None:
    """The data of a flow's connection, their numbers and payload bytes, and the acknowledgements that came back; None:
    no data, several connections, or MPTCP, whose sequence numbers are per subflow.
    """
    rows, column = data_units(sender, flow.protocol)
    if not len(rows) or (rows["flow"] != rows["flow"][0]).any() or flow.protocol == "mptcp":
        return None
    capture, sctp = sender.point.capture, flow.protocol == "sctp"
    acks = sender.rows(capture.sacks if sctp else capture.segments, back=True)
    mine = acks["flow"] == rows["flow"][0]
    acks = rows_where(acks, mine if sctp else mine & (acks["flags"] & ACK != 0))
    size = rows["user_bytes" if sctp else "payload_bytes"].astype(np.int64)
    return rows, rows[column].astype(np.int64), size, acks


def _first_rows(packet: Ints) -> Ints:
    """The first row of each packet; the rows are in the order of the packets."""
    return np.flatnonzero(np.concatenate([[True], packet[1:] != packet[:-1]]))


def sending_of(flow: Flow, sender: FlowPackets, end_ns: int | None) -> Sending | None:
    """The data packets sent by end_ns (None: all) and every acknowledgement of the capture: those of the last data come
    later. None: not one connection.
    """
    if (connection := _only_connection(flow, sender)) is None:
        return None
    rows, begin, size, acks = connection
    first = _first_rows(rows["packet"])
    sctp = flow.protocol == "sctp"
    units = begin + 1 if sctp else begin + size
    acked = acks["cumulative_tsn"].astype(np.int64) + 1 if sctp else acks["ack"].astype(np.int64)
    sent_ns = rows["time_ns"][first] - sender.t0_realtime_ns  # `reduceat` below: rows are in the order of packets
    keep = np.full(len(first), True) if end_ns is None else sent_ns <= end_ns
    return Sending(
        packet=rows["packet"][first].astype(np.int64)[keep],
        sent_ns=sent_ns[keep],
        begin=np.minimum.reduceat(begin, first)[keep],
        end=np.maximum.reduceat(units, first)[keep],
        payload_bytes=np.add.reduceat(size, first)[keep],
        again=np.logical_or.reduceat(rows["is_retransmission"].astype(np.bool_), first)[keep],
        ack_packet=acks["packet"].astype(np.int64),
        ack_ns=acks["time_ns"].astype(np.int64) - sender.t0_realtime_ns,
        acked=acked,
    )


@dataclasses.dataclass(frozen=True)
class AckedData:
    """First transmissions and acknowledgements at the sender, sorted by time (ns from T0).

    sent_bytes, acked_bytes: payload from the first byte up to and including this packet or acknowledgement.
    packet_bytes: payload of the largest packet. window_bytes: the largest receive window announced. answered_ns: the
    first acknowledgement of any data, cumulative or not; None: there was none.
    """

    sent_ns: Ints
    sent_bytes: Ints
    acked_ns: Ints
    acked_bytes: Ints
    packet_bytes: int
    window_bytes: int
    answered_ns: int | None = None

    @property
    def initial_packets(self) -> int | None:
        """Number of packets first sent before any data were acknowledged: the initial window (RFC 5681 3.1, RFC 9260
        7.2.1). What an acknowledgement of later packets lets out while the first one is missing is not of it.
        """
        if self.answered_ns is None:
            return None
        return int(np.searchsorted(self.sent_ns, self.answered_ns, side="left"))

    @property
    def nearly_full_bytes(self) -> int:
        """The announced window in whole packets, minus one packet. Linux' SCTP increases cwnd only while that much is
        outstanding, so it stops one packet below the window.
        """
        return (self.window_bytes // self.packet_bytes - 1) * self.packet_bytes

    def full_ns(self) -> int | None:
        """The first time at which the announced window was full, to within one packet."""
        acked = np.concatenate([[0], np.maximum.accumulate(self.acked_bytes)])
        before = acked[np.searchsorted(self.acked_ns, self.sent_ns, side="right")]
        full = np.flatnonzero(self.sent_bytes - before >= self.nearly_full_bytes)
        return int(self.sent_ns[full[0]]) if len(full) else None


def outstanding_of(flow: Flow, sender: FlowPackets) -> AckedData | None:
    """None: not one connection, or no data was sent or acknowledged."""
    if (connection := _only_connection(flow, sender)) is None:
        return None
    rows, begin, size, acks = connection
    new = ~rows["is_retransmission"].astype(np.bool_)
    rows, begin, size = rows_where(rows, new), begin[new], size[new]
    if not len(acks) or not len(rows):
        return None
    if flow.protocol == "sctp":
        total = np.concatenate([[0], np.cumsum(size[np.argsort(begin, kind="stable")])])
        end = total[np.minimum(begin + 1, len(total) - 1)]
        acked = total[np.clip(acks["cumulative_tsn"] + 1, 0, len(total) - 1)]
        answers = (acked > 0) | (acks["gap_blocks"] > 0)
        inits = sender.rows(sender.point.capture.inits, back=True)
        window = int(inits["a_rwnd_bytes"][inits["flow"] == rows["flow"][0]].max(initial=0))
    else:
        end = begin - 1 + size
        acked = np.maximum(acks["ack"] - 1, 0)
        answers = (acked > 0) | (acks["sack_blocks"] > 0)
        window = int(acks["window_bytes"].max(initial=0))
    first = _first_rows(rows["packet"])
    last = np.concatenate([first[1:], [len(rows)]]) - 1
    payload = np.add.reduceat(size, first)
    answered = acks["time_ns"][answers] - sender.t0_realtime_ns
    return AckedData(
        sent_ns=rows["time_ns"][first] - sender.t0_realtime_ns,
        sent_bytes=np.maximum.accumulate(end[last]),
        acked_ns=acks["time_ns"] - sender.t0_realtime_ns,
        acked_bytes=acked,
        packet_bytes=int(payload.max()),
        window_bytes=window,
        answered_ns=int(answered[0]) if len(answered) else None,
    )


def rounds(outstanding: AckedData, until_ns: int | None) -> Iterator[int]:
    """Number of packets first sent in each round trip that ended by `until_ns`."""
    for packets, end_ns in round_ends(outstanding):
        if until_ns is not None and end_ns > until_ns:
            return
        yield packets


def round_ends(outstanding: AckedData) -> Iterator[tuple[int, int]]:
    """Packets first sent in each round trip, and its end (ns from T0). A round ends when its first packet is
    acknowledged; the packets sent from then on form the next one.
    """
    known = np.maximum.accumulate(outstanding.acked_bytes)
    begin = 0
    while begin < len(outstanding.sent_bytes):
        covering = int(np.searchsorted(known, outstanding.sent_bytes[begin], side="left"))
        if covering == len(known):
            return
        end_ns = int(outstanding.acked_ns[covering])
        end = int(np.searchsorted(outstanding.sent_ns, end_ns, side="left"))
        if end <= begin:
            return
        yield end - begin, end_ns
        begin = end
