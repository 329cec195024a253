"""The packets that a cell's hosts sent, each with its name and its number on its link: what a schedule may touch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from ..captures.native import Rows
from ..core.link_types import DirectionName
from ..core.schedule_levels import PacketPosition
from ..core.types import Cell
from ..core.wire import ACK, DATA, FIN, I_DATA, RST, SACK, SYN, chunk_name
from ..testbed.layout import make_layout
from .capture_point import CapturePoint, captured_links, read_point

COUNTED = frozenset({"DATA", "DATA again", "SACK", "ACK", "HEARTBEAT", "HEARTBEAT ACK", "packet"})
"""Names that have a number from the first on; of the others there usually is one."""
PAYLOAD = (DATA, I_DATA)


def packet_positions(cell: Cell, cell_dir: Path, t0_realtime_ns: int) -> list[PacketPosition]:
    """Every packet that hosts sent over captured links, in the order of sending; of equal times in that of nodes and
    links.

    Numbers count all packets that come to a direction from the cell's start, as packet rules do. Raises CaptureError.
    """
    hosts = [node.name for node in cell.nodes if node.kind == "host"]
    links = {host: captured_links(cell, host) for host in hosts}
    ends = {link.name: (link.a, link.b) for link in cell.links}
    addresses = {host: {face.ip for face in make_layout(cell).interfaces() if face.node == host} for host in hosts}
    sent: list[tuple[int, int, str, DirectionName, int, str, str]] = []
    for host, captured in links.items():
        if not captured:
            continue
        point = read_point(cell_dir, host, captured, host=True)
        names = _names(point)
        numbers: Counter[str] = Counter()
        for row in _sent_rows(point, addresses[host]):
            packet = point.capture.packets[row]
            link = captured[int(packet["source"])]
            numbers[link] += 1
            direction: DirectionName = "forward" if ends[link][0] == host else "backward"
            time_ns = int(packet["time_ns"]) - t0_realtime_ns
            sent.append((time_ns, len(sent), link, direction, numbers[link], names[row], host))
    sent.sort()
    following = _gaps(sent)
    of_kind: Counter[str] = Counter()
    positions = []
    for place, (time_ns, _, link, direction, number, kind, host) in enumerate(sent):
        of_kind[kind] += 1
        plain = of_kind[kind] == 1 and kind not in COUNTED
        name = kind if plain else f"{kind} {of_kind[kind]}"
        positions.append(PacketPosition(link, direction, number, time_ns, name, host, following.get(place)))
    return positions


def _gaps(sent: Iterable[tuple[int, int, str, DirectionName, int, str, str]]) -> dict[int, int]:
    """Place of a packet -> time to the next one of its direction."""
    latest: dict[tuple[str, str], tuple[int, int]] = {}
    gaps: dict[int, int] = {}
    for place, (time_ns, _, link, direction, *_rest) in enumerate(sent):
        if (before := latest.get((link, direction))) is not None:
            gaps[before[0]] = time_ns - before[1]
        latest[link, direction] = place, time_ns
    return gaps


def _sent_rows(point: CapturePoint, addresses: set[str]) -> list[int]:
    """The rows of the packets whose source is an address of the host."""
    packets = point.capture.packets
    own = np.array([[pair[0] in addresses, pair[1] in addresses] for pair in point.addresses], dtype=np.bool_)
    if not len(own):
        return []
    known = packets["path"] < len(own)
    path = np.where(known, packets["path"], 0)
    rows: list[int] = np.flatnonzero(known & own[path, packets["path_direction"]]).tolist()
    return rows


def _names(point: CapturePoint) -> dict[int, str]:
    """Row of a packet -> its kind."""
    packets, capture = point.capture.packets, point.capture
    names = dict.fromkeys(range(len(packets)), "packet")
    for segment in capture.segments:
        names[int(segment["packet"])] = _segment_name(segment)
    chunks: dict[int, list[Rows]] = {}
    for chunk in capture.chunks:
        chunks.setdefault(int(chunk["packet"]), []).append(chunk)
    for row, of_packet in chunks.items():
        names[row] = _chunks_name(of_packet)
    return names


def _segment_name(segment: Rows) -> str:
    flags = int(segment["flags"])
    if flags & SYN:
        return "SYN ACK" if flags & ACK else "SYN"
    if flags & RST:
        return "RST"
    if int(segment["payload_bytes"]):
        return "DATA again" if segment["is_retransmission"] else "DATA"
    return "FIN" if flags & FIN else "ACK"


def _chunks_name(chunks: list[Rows]) -> str:
    """The first control chunk but SACK, else DATA, else SACK."""
    control = next((chunk for chunk in chunks if int(chunk["type"]) not in (*PAYLOAD, SACK)), None)
    if control is not None:
        return chunk_name(int(control["type"]))
    data = [chunk for chunk in chunks if int(chunk["type"]) in PAYLOAD]
    if data:
        return "DATA again" if any(chunk["is_retransmission"] for chunk in data) else "DATA"
    return chunk_name(int(chunks[0]["type"]))
