"""What a flow's sender sent and heard, as one sequence, and the loss events in it. TCP and SCTP alike."""

from __future__ import annotations

import dataclasses

import numpy as np

from ...captures.native import Bools, Ints
from ...core.types import Flow
from ...core.wire import ACK
from ..flow_packets import FlowPackets
from ..sent_times import data_units

WARM_UP_EVENTS = 3
"""Slow start overshoots; each loss event halves what it left."""
FEWEST_CYCLES = 5


@dataclasses.dataclass(frozen=True)
class Sending:
    """Data packets at their sender, and what came back, each in the order of the capture; times in ns from T0.

    begin, end: numbers of a packet's first and last unit (TCP: bytes, SCTP: TSNs), end exclusive. again: carries
    something sent before. packet, ack_packet: place in the capture, which orders what happens in one instant.
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
        """Places of the packets that begin one: the first retransmission, then the first after all that had been sent
        by then is acknowledged cumulatively (RFC 6582 3.2, RFC 6675 5, RFC 9260 7.2.4: the window is halved once).
        """
        highest = np.maximum.accumulate(self.end)
        known = np.maximum.accumulate(self.acked) if len(self.acked) else self.acked
        places = np.flatnonzero(self.again)
        found: list[int] = []
        packets = self.packet[places]
        place = 0
        while place < len(places):
            one = int(places[place])
            found.append(one)
            done = int(np.searchsorted(known, highest[one]))
            if done == len(known):
                break
            # what was acknowledged before it was sent again ends its event at once
            place = max(place + 1, int(np.searchsorted(packets, self.ack_packet[done])))
        return np.array(found, dtype=np.int64)


def sending_of(flow: Flow, sender: FlowPackets, end_ns: int | None) -> Sending | None:
    """None: no data, or several connections. Only what was sent by end_ns."""
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
    sent_ns = rows["time_ns"][first] - sender.t0_realtime_ns
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


@dataclasses.dataclass(frozen=True)
class Steady:
    """Whole cycles from loss event to loss event, without the first ones. sent_bit_s: payload, retransmissions too."""

    seconds: float
    sent_bit_s: float
    event_ratio: float


def steady_of(sending: Sending, events: Ints) -> Steady | None:
    """None: fewer than FEWEST_CYCLES cycles after the first WARM_UP_EVENTS."""
    if len(events) < WARM_UP_EVENTS + FEWEST_CYCLES + 1:
        return None
    begin, end = int(events[WARM_UP_EVENTS]), int(events[-1])
    seconds = (int(sending.sent_ns[end]) - int(sending.sent_ns[begin])) / 1e9
    return Steady(
        seconds=seconds,
        sent_bit_s=float(sending.payload_bytes[begin:end].sum()) * 8 / seconds,
        event_ratio=(len(events) - 1 - WARM_UP_EVENTS) / (end - begin),
    )
