"""The packets of a flow of QUIC at its two ends: datagrams of UDP to and from the port of the end that listens.

What they carry is encrypted: their payload is known as bytes, not as new bytes or as bytes sent again.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from ..captures.capture import rows_where
from ..captures.native import Ints, Rows
from ..core.types import Cell, Flow
from ..core.wire import ECN_MASK
from ..testbed.layout import make_layout
from .capture_point import CapturePoint
from .flow_packets import FlowPackets, PacketColumns
from .observation import Window


@dataclasses.dataclass(frozen=True)
class QuicPackets:
    """A flow of QUIC at one end. datagrams: as those of any flow; sent, back: rows of the analyser's table `quic`
    (captures/quic.py), from the flow's sender and from its receiver.
    """

    datagrams: FlowPackets
    sent: Rows
    back: Rows


def quic_packets(cell: Cell, flow: Flow, point: CapturePoint | None, t0_realtime_ns: int) -> QuicPackets | None:
    """The flow's packets at one capture point; None without one."""
    if point is None:
        return None
    layout, path = make_layout(cell), flow.paths[0]
    ends = (layout.interface(flow.sender, path.sender_link).ip, layout.interface(flow.receiver, path.receiver_link).ip)
    there = tuple(reversed(ends))
    datagrams, packets = point.capture.datagrams, point.capture.quic
    from_sender = ("source_port" if flow.listener == "sender" else "destination_port", ends)
    from_receiver = ("destination_port" if flow.listener == "sender" else "source_port", there)

    def mine(rows: Rows, way: tuple[str, tuple[str, ...]]) -> Rows:
        column, (source, destination) = way
        return rows_where(rows, (rows[column] == flow.port) & point.between(rows, source, destination))

    def columns(rows: Rows) -> PacketColumns:
        nothing: Ints = np.zeros(len(rows), dtype=np.int64)
        return PacketColumns(
            t_ns=rows["time_ns"].astype(np.int64) - t0_realtime_ns,
            ip_bytes=rows["ip_bytes"].astype(np.int64),
            payload_bytes=rows["payload_bytes"].astype(np.int64),
            new_bytes=nothing,
            path=nothing,
            retransmission=nothing.astype(np.bool_),
            other_path=nothing.astype(np.bool_),
            acks=nothing.astype(np.bool_),
            codepoint=(point.capture.packets["tos"][rows["packet"]] & ECN_MASK).astype(np.int64),
        )

    return QuicPackets(
        FlowPackets(
            point=point,
            data=columns(mine(datagrams, from_sender)),
            back=columns(mine(datagrams, from_receiver)),
            data_direction={},
            path_index={},
            peers={},
            t0_realtime_ns=t0_realtime_ns,
        ),
        mine(packets, from_sender),
        mine(packets, from_receiver),
    )


def quic_window(flow: Flow, arrived_ns: Ints, ended: tuple[int, bool] | None) -> Window:
    """The window of a flow of QUIC: up to the last datagram that arrived before the program that connects ended, or to
    the flow's stop.

    arrived_ns: of all datagrams at the receiver, from T0. ended: when that program ended by itself, and whether with
    status 0 (observation.program_end). What arrives later is read by nobody: the transport ended with the program.
    """
    first = int(arrived_ns[0]) if len(arrived_ns) else None
    read = arrived_ns if ended is None else arrived_ns[arrived_ns <= ended[0]]
    if ended is None or not len(read):
        return Window(first, flow.stop_ns, False)
    return Window(first, int(read[-1]), ended[1])
