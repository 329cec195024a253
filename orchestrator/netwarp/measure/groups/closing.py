"""The closing of both ends of a connection: what each of them sent to close it was answered in the end.

RFC 9293 3.6 (each end's FIN is acknowledged), RFC 9260 9.2 (SHUTDOWN by a SHUTDOWN ACK, that by a SHUTDOWN COMPLETE),
RFC 8684 3.3.3 (each end's DATA_FIN by a DATA_ACK).
"""

from __future__ import annotations

import numpy as np

from ...captures.capture import rows_of_flow, rows_of_flows
from ...captures.mptcp.data_level import DATA_ACK
from ...captures.native import UNKNOWN, Rows
from ...core.wire import ABORT, DSS, FIN, RST, SHUTDOWN_ACK, SHUTDOWN_COMPLETE, SYN
from ..flow_packets import FlowPackets

WRAP = 1 << 32
"""A DATA_FIN may have 32 bits of its number only."""


def unclosed_ends(sender: FlowPackets, receiver: FlowPackets) -> float:
    """Ends that were never closed, each by the captures of its own host: of every connection that was set up (subflow,
    association), and of MPTCP's connection as a whole. A reset or an ABORT closes the end that sends or receives it.
    """
    unclosed = 0
    for packets, own_is_data in ((sender, True), (receiver, False)):
        capture = packets.point.capture
        own = {row: sends if own_is_data else 1 - sends for row, sends in packets.data_direction.items()}
        for row, direction in own.items():
            segments, chunks = (rows_of_flow(capture, name, row) for name in ("segments", "chunks"))
            if len(chunks):
                unclosed += not _association_closed(chunks, direction)
            elif bool((segments["flags"] & (SYN | RST) == 0).any()):
                unclosed += not _tcp_closed(segments, direction)
        unclosed += not _mptcp_closed(packets, own)
    return float(unclosed)


def _tcp_closed(segments: Rows, own: int) -> bool:
    if (segments["flags"] & RST > 0).any():
        return True
    sent = segments["direction"] == own
    fins = segments[sent & (segments["flags"] & FIN > 0) & (segments["seq"] != UNKNOWN)]
    return bool(len(fins)) and bool((segments["ack"][~sent] > (fins["seq"] + fins["payload_bytes"]).max()).any())


def _association_closed(chunks: Rows, own: int) -> bool:
    heard = chunks["direction"] != own
    ends = (SHUTDOWN_ACK, SHUTDOWN_COMPLETE)
    return bool((chunks["type"] == ABORT).any() or np.isin(chunks["type"][heard], ends).any())


def _mptcp_closed(packets: FlowPackets, own: dict[int, int]) -> bool:
    """True if a DATA_FIN of this end was answered; also if it sent none, as after a fallback to TCP, or if its peer
    sends DATA_ACKs of 32 bits, which the analyser does not keep: those are not judged.
    """
    rows = list(own)
    capture = packets.point.capture
    options, segments = (rows_of_flows(capture, name, rows) for name in ("mptcp_options", "segments"))
    if not len(options):
        return True
    direction = np.zeros(max(rows) + 1, dtype=np.uint8)
    direction[rows] = [own[row] for row in rows]
    fins = options[(options["subtype"] == DSS) & (options["dsn"] != UNKNOWN)]
    fins = fins[fins["direction"] == direction[fins["flow"]]]
    if not len(fins):
        return True
    payload = dict(zip(segments["packet"].tolist(), segments["payload_bytes"].tolist(), strict=True))
    last = max(int(fin["dsn"]) + payload.get(int(fin["packet"]), 0) for fin in fins)
    heard = (segments["direction"] != direction[segments["flow"]]) & (segments["options"] & DATA_ACK > 0)
    beyond = (segments["dsn"][heard].astype(np.int64) - last) % WRAP
    return not len(beyond) or bool(((beyond > 0) & (beyond < WRAP // 2)).any())
