"""Times of pages that a program of the user's own fetches, by the client's captures alone.

What it asks for is not read from its packets. A page is the TCP connections that are open at the same time: it begins
with the first SYN after the client has closed every connection before. Its end is when the last byte that arrived
before the client closed could be delivered: a client closes when it has what it asked for.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from ..captures.native import Rows
from ..core.wire import FIN, RST
from .accepted_data import NEVER, accepted_segments
from .flow_packets import FlowPackets
from .pages import ByteSequence


@dataclasses.dataclass(frozen=True)
class AskedPage:
    """Times in ns from T0. closed_ns, delivered_ns: NEVER if that was not seen; connections: how many it took."""

    opened_ns: int
    requested_ns: int
    delivered_ns: int
    closed_ns: int
    connections: int = 1

    @property
    def complete(self) -> bool:
        """True if the client closed all its connections, and had every byte that arrived before."""
        return NEVER not in (self.requested_ns, self.delivered_ns, self.closed_ns)


def asked_pages(client: FlowPackets) -> list[AskedPage]:
    """The pages in the order of time."""
    pages: list[AskedPage] = []
    for connection in sorted(_connections(client), key=lambda each: each.opened_ns):
        if not pages or connection.opened_ns >= pages[-1].closed_ns:
            pages.append(connection)
            continue
        page = pages[-1]
        pages[-1] = AskedPage(
            opened_ns=page.opened_ns,
            requested_ns=min(page.requested_ns, connection.requested_ns),
            delivered_ns=max(page.delivered_ns, connection.delivered_ns),
            closed_ns=max(page.closed_ns, connection.closed_ns),
            connections=page.connections + 1,
        )
    return pages


def _connections(client: FlowPackets) -> list[AskedPage]:
    """Each connection as a page of its own."""
    capture, t0_ns = client.point.capture, client.t0_realtime_ns
    table, accepted = capture.segments, accepted_segments(client, "tcp")
    connections = []
    for row, sends in client.data_direction.items():
        asked = table[(table["flow"] == row) & (table["direction"] != sends)]
        requested = _first(asked[asked["payload_bytes"] > 0])
        closed = _first(asked[(asked["flags"] & (FIN | RST)) > 0])
        mine = accepted[(accepted["flow"] == row) & (accepted["time_ns"] <= closed)]
        sequence = ByteSequence.of_segments(mine)
        delivered = sequence.seen(0, int(sequence.end.max()))[1] if len(mine) else NEVER
        times = (int(capture.flows["first_ns"][row]), requested, delivered, closed)
        connections.append(AskedPage(*(time if time == NEVER else time - t0_ns for time in times)))
    return connections


def _first(segments: Rows) -> int:
    return int(np.min(segments["time_ns"])) if len(segments) else NEVER
