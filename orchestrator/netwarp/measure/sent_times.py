"""Sending times: when packets that arrived at the receiver had been sent, and the sender's own list of data packets
with the acknowledgements it received. The same columns for TCP and SCTP.
"""

from __future__ import annotations

import dataclasses

import numpy as np

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
    mine = np.zeros(len(packets), dtype=np.bool_)
    for row, sends in receiver.data_direction.items():
        mine |= (packets["flow"] == row) & (packets["direction"] == sends)
    rows = np.flatnonzero(mine)  # of the packets of receiver.data, in the same order
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


def sending_of(flow: Flow, sender: FlowPackets, end_ns: int | None) -> Sending | None:
    """The data packets sent by end_ns (None: all) and every acknowledgement of the capture: those of the last data come
    later. None: no data, several connections, or MPTCP, whose sequence numbers are per subflow.
    """
    rows, column = data_units(sender, flow.protocol)
    if not len(rows) or len(np.unique(rows["flow"])) > 1 or flow.protocol == "mptcp":
        return None
    row = int(rows["flow"][0])
    capture, sends = sender.point.capture, sender.data_direction[row]
    _, first = np.unique(rows["packet"], return_index=True)
    if flow.protocol == "sctp":
        begin, size, units = rows[column], rows["user_bytes"].astype(np.int64), rows[column] + 1
        acks = capture.sacks[(capture.sacks["flow"] == row) & (capture.sacks["direction"] != sends)]
        acked = acks["cumulative_tsn"].astype(np.int64) + 1
    else:
        begin, size = rows[column], rows["payload_bytes"].astype(np.int64)
        units = begin + size
        back = capture.segments[(capture.segments["flow"] == row) & (capture.segments["direction"] != sends)]
        acks = back[back["flags"] & ACK != 0]
        acked = acks["ack"].astype(np.int64)
    sent_ns = rows["time_ns"][first] - sender.t0_realtime_ns  # `reduceat` below: rows are in the order of packets
    keep = np.full(len(first), True) if end_ns is None else sent_ns <= end_ns
    return Sending(
        packet=rows["packet"][first].astype(np.int64)[keep],
        sent_ns=sent_ns[keep],
        begin=np.minimum.reduceat(begin.astype(np.int64), first)[keep],
        end=np.maximum.reduceat(units.astype(np.int64), first)[keep],
        payload_bytes=np.add.reduceat(size, first)[keep],
        again=np.logical_or.reduceat(rows["is_retransmission"].astype(np.bool_), first)[keep],
        ack_packet=acks["packet"].astype(np.int64),
        ack_ns=acks["time_ns"].astype(np.int64) - sender.t0_realtime_ns,
        acked=acked,
    )
