"""Computes the bytes that a sender had outstanding, and the packets it sent in each round trip."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np

from ..captures.native import Ints
from ..core.types import Flow
from ..core.wire import ACK
from .flow_packets import FlowPackets
from .sent_times import data_units


@dataclasses.dataclass(frozen=True)
class Outstanding:
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


def outstanding_of(flow: Flow, sender: FlowPackets) -> Outstanding | None:
    """None if no data was sent or acknowledged, or if the protocol has several subflows (MPTCP)."""
    rows, column = data_units(sender, flow.protocol)
    rows = rows[~rows["is_retransmission"]]
    if flow.protocol == "mptcp" or not len(rows) or len(np.unique(rows["flow"])) > 1:
        return None
    row = int(rows["flow"][0])
    sends = sender.data_direction[row]
    capture = sender.point.capture
    if flow.protocol == "sctp":
        size = rows["user_bytes"].astype(np.int64)
        total = np.concatenate([[0], np.cumsum(size[np.argsort(rows[column], kind="stable")])])
        end = total[np.minimum(rows[column] + 1, len(total) - 1)]
        acks = capture.sacks[(capture.sacks["flow"] == row) & (capture.sacks["direction"] != sends)]
        acked = total[np.clip(acks["cumulative_tsn"] + 1, 0, len(total) - 1)]
        answers = (acked > 0) | (acks["gap_blocks"] > 0)
        inits = capture.inits[(capture.inits["flow"] == row) & (capture.inits["direction"] != sends)]
        window = int(inits["a_rwnd_bytes"].max(initial=0))
    else:
        size = rows["payload_bytes"].astype(np.int64)
        end = rows[column] - 1 + size
        back = capture.segments[(capture.segments["flow"] == row) & (capture.segments["direction"] != sends)]
        acks = back[back["flags"] & ACK != 0]
        acked = np.maximum(acks["ack"] - 1, 0)
        answers = (acked > 0) | (acks["sack_blocks"] > 0)
        window = int(acks["window_bytes"].max(initial=0))
    if not len(acks):
        return None
    _, first = np.unique(rows["packet"], return_index=True)
    last = np.concatenate([first[1:], [len(rows)]]) - 1
    payload = np.add.reduceat(size, first)
    answered = acks["time_ns"][answers] - sender.t0_realtime_ns
    return Outstanding(
        sent_ns=rows["time_ns"][first] - sender.t0_realtime_ns,
        sent_bytes=np.maximum.accumulate(end[last]),
        acked_ns=acks["time_ns"] - sender.t0_realtime_ns,
        acked_bytes=acked,
        packet_bytes=int(payload.max()),
        window_bytes=window,
        answered_ns=int(answered[0]) if len(answered) else None,
    )


def rounds(outstanding: Outstanding, until_ns: int | None) -> Iterator[int]:
    """Number of packets first sent in each round trip. A round ends when its first packet is acknowledged; the packets
    sent from then on form the next one. Only rounds that ended by `until_ns`.
    """
    known = np.maximum.accumulate(outstanding.acked_bytes)
    begin = 0
    while begin < len(outstanding.sent_bytes):
        covering = int(np.searchsorted(known, outstanding.sent_bytes[begin], side="left"))
        if covering == len(known):
            return
        end_ns = int(outstanding.acked_ns[covering])
        end = int(np.searchsorted(outstanding.sent_ns, end_ns, side="left"))
        if end <= begin or (until_ns is not None and end_ns > until_ns):
            return
        yield end - begin
        begin = end
