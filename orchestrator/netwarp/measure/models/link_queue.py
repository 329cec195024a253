"""Computes a queue of fixed rate packet by packet: when each packet must leave, and which packets find it full.

Lindley's recursion (D. V. Lindley: The theory of queues with a single server, 1952): the sending of a packet begins
when it arrives or when the packet before it has been sent, whichever is later. So the arrival times alone give every
departure.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from ...captures.capture import read_captures
from ...captures.hop_joins import NOWHERE, match_packets
from ...captures.native import Bools, Ints, Rows
from ...core.types import Cell, Flow, LinkImpairment
from ...core.wire import ETHERNET_HEADER_BYTES
from ..delivery import aborted_ns
from ..flow_packets import FlowPackets

INSTANT_NS = 2_000
"""Times closer than this are one instant: what two clock reads and a timer make of it."""


@dataclasses.dataclass(frozen=True)
class Passage:
    """The packets that arrived at a queue, in order; ns. left_ns: for the accepted packets, when their last bit had
    left.
    """

    came_ns: Ints
    let_in: Bools
    left_ns: Ints
    sending_ns: Ints

    @property
    def waited_ns(self) -> Ints:
        """For the accepted packets: from arrival to the departure of the first bit."""
        return self.left_ns - self.sending_ns[self.let_in] - self.came_ns[self.let_in]


def departures(came_ns: Ints, sending_ns: Ints) -> Ints:
    """Lindley: left[n] = max(came[n], left[n-1]) + sending[n]."""
    through = np.cumsum(sending_ns)
    return through + np.maximum.accumulate(came_ns - (through - sending_ns))


def waiting(passage: Passage, left_ns: Ints) -> tuple[Ints, Ints]:
    """The number of packets waiting when each packet arrives, not counting the one being sent: (at least, at most). The
    two differ if a packet leaves at that very instant, since captures do not show which came first. left_ns: of the
    accepted packets.
    """
    before: Ints = np.cumsum(passage.let_in) - passage.let_in
    least, most = (
        np.maximum(before - np.searchsorted(left_ns, passage.came_ns + off, side="right") - 1, 0)
        for off in (INSTANT_NS, -INSTANT_NS)
    )
    return least, most


def passage_of(
    cell: Cell, flow: Flow, sender: FlowPackets, receiver: FlowPackets
) -> tuple[Passage, LinkImpairment] | None:
    """The flow's packets through the queue of its one link, towards the receiver; times at the queue.

    None if anything but the rate, the queue and a constant delay acts on the packets, or if other flows share the
    queue: loss, jitter, faults, several links. Then arrival and departure times are not all known.
    """
    links = {link.name: link for link in cell.links}
    path = flow.paths[0]
    if len(flow.paths) > 1 or path.sender_link != path.receiver_link or len(cell.flows) > 1 or cell.timeline:
        return None
    link = links[path.sender_link]
    shape = link.forward if link.a == flow.sender else link.backward
    plain = LinkImpairment(
        one_way_delay_ns=shape.one_way_delay_ns,
        rate_bit_s=shape.rate_bit_s,
        queue_packets=shape.queue_packets,
        layer=shape.layer,
    )
    if shape != plain or shape.rate_bit_s is None or flow.program is not None:
        return None
    sent, arrived = _towards_receiver(sender), _towards_receiver(receiver)
    arrival = match_packets(sent, arrived).place
    # behind the last one that arrived, what did not may have been on its way when the captures ended
    end = int(np.flatnonzero(arrival != NOWHERE).max(initial=-1)) + 1
    sent, arrival = sent[:end], arrival[:end]
    let_in = arrival != NOWHERE
    if not end:
        return None
    bytes_sent = sent["ip_bytes"].astype(np.int64) + (ETHERNET_HEADER_BYTES if shape.layer == "ethernet" else 0)
    passage = Passage(
        came_ns=sent["time_ns"] + shape.one_way_delay_ns,
        let_in=let_in,
        left_ns=arrived["time_ns"][arrival[let_in]],
        sending_ns=bytes_sent * 1_000_000_000 // (shape.rate_bit_s // 8),
    )
    return passage, shape


def _towards_receiver(packets: FlowPackets) -> Rows:
    """Rows of `identities` of the flow's packets from its sender."""
    capture = read_captures(packets.point.capture.files, ("identities",))
    rows = capture.identities
    mine = np.zeros(len(rows), dtype=np.bool_)
    for row, sends in packets.data_direction.items():
        table = packets.point.capture.flows[row]
        path, towards = int(table["path"]), int(table["path_direction"]) ^ sends
        alive = rows["time_ns"] <= aborted_ns(packets, row)  # ABORTs behind it cannot be told apart
        mine |= (rows["path"] == path) & (rows["path_direction"] == towards) & alive
    return rows[mine][np.argsort(rows["time_ns"][mine], kind="stable")]
