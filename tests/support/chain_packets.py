"""Decodes captures without the product's analyser: frames, IPv4 packets, SCTP chunks."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from support import cell_init_kit as kit
from support.chain_kit import unpacked
from support.run_files import CellFiles

IPV4 = 0x0800
TCP, SCTP, ICMP = 6, 132, 1
DATA, HEARTBEAT = 0, 4
ETHERNET = 14


@dataclass(frozen=True)
class Frame:
    """One frame. t_ns from T0; `identity`: the IP packet without what a router changes, so that it is the same at both
    ends of a path; `source`, `target`: addresses; `chunks`: their types, for SCTP, and `tag`: the
    verification tag; `options`: their kinds, for TCP."""

    t_ns: int
    length: int
    ethertype: int
    source: str
    target: str
    protocol: int
    identity: bytes
    chunks: tuple[int, ...]
    data_bytes: int
    flags: int = 0
    options: tuple[int, ...] = ()
    tag: int = 0

    @property
    def ip_bytes(self) -> int:
        """Length at the IP layer."""
        return self.length - ETHERNET


def frames(capture: Path) -> list[Frame]:
    """Every frame of a .pcap.zst; asserts that the file is whole."""
    plain = capture.with_suffix("")
    plain.write_bytes(unpacked(capture.read_bytes()))
    try:
        return [_frame(packet) for packet in kit.read_pcap(plain)]
    finally:
        plain.unlink()


def _frame(packet: kit.Packet) -> Frame:
    data = packet.data
    assert len(data) == packet.length
    (ethertype,) = struct.unpack_from("!H", data, 12)
    if ethertype != IPV4:
        return Frame(packet.t_ns, packet.length, ethertype, "", "", 0, data, (), 0)
    header = 4 * (data[14] & 15)
    (total,) = struct.unpack_from("!H", data, 16)
    assert total == len(data) - ETHERNET, "padding, or a frame cut short"
    # time to live and header checksum change in the hop
    identity = data[14:22] + data[23:24] + data[26 : 14 + total]
    source, target = (".".join(map(str, data[at : at + 4])) for at in (26, 30))
    protocol = data[23]
    body = data[14 + header :]
    chunks: tuple[int, ...] = ()
    size = 0
    if protocol == SCTP:
        parsed = list(_chunks(body))
        chunks = tuple(kind for kind, _ in parsed)
        size = sum(length - 16 for kind, length in parsed if kind == DATA)
        (tag,) = struct.unpack_from("!I", body, 4)
        return Frame(packet.t_ns, packet.length, ethertype, source, target, protocol, identity, chunks, size, tag=tag)
    if protocol == TCP:
        offset = 4 * (body[12] >> 4)
        size, flags, options = len(body) - offset, body[13], tuple(_options(body[20:offset]))
        return Frame(
            packet.t_ns, packet.length, ethertype, source, target, protocol, identity, (), size, flags, options
        )
    return Frame(packet.t_ns, packet.length, ethertype, source, target, protocol, identity, chunks, size)


def _options(data: bytes) -> Iterator[int]:
    at = 0
    while at < len(data) and data[at]:
        yield data[at]
        at += 1 if data[at] == 1 else data[at + 1]


def _chunks(body: bytes) -> Iterator[tuple[int, int]]:
    at = 12
    while at + 4 <= len(body):
        kind, _, length = struct.unpack_from("!BBH", body, at)
        assert length >= 4
        yield kind, length
        at += (length + 3) & ~3


def describe(data: bytes, length: int) -> str:
    """A frame in words: what a reader needs to find it."""
    if len(data) < length:
        return f"{length} bytes, {len(data)} of them kept"
    if data[12:14] != b"\x08\x00":
        return f"Ethernet type {data[12:14].hex()}, {length} bytes"
    frame = _frame(kit.Packet(0, length, data))
    body = data[ETHERNET + 4 * (data[ETHERNET] & 15) :]
    said = f"{frame.source} > {frame.target}, {length} bytes"
    if frame.protocol == TCP:
        sequence, acknowledgement = struct.unpack_from("!II", body, 4)
        return (
            f"TCP {said}, seq {sequence}, ack {acknowledgement}, flags {frame.flags:#04x}, payload {frame.data_bytes} B"
        )
    if frame.protocol == SCTP:
        tsns = [struct.unpack_from("!I", body, at)[0] for at in _data_chunks(body)]
        return f"SCTP {said}, chunks {list(frame.chunks)}" + (f", TSN {tsns[0]}" if tsns else "")
    return f"protocol {frame.protocol}, {said}"


def _data_chunks(body: bytes) -> Iterator[int]:
    """Where the TSN of each DATA chunk stands."""
    at = 12
    for kind, length in _chunks(body):
        if kind == DATA:
            yield at + 4
        at += (length + 3) & ~3


def from_host(host: str, found: list[Frame]) -> list[Frame]:
    """What that host sent: a's addresses end in .1, b's in .129 (docs: layout of a link with a hop)."""
    ending = {"a": ".1", "b": ".129"}[host]
    return [frame for frame in found if frame.source.endswith(ending)]


@dataclass(frozen=True)
class Way:
    """One direction of p1: what a host sent, what of it arrived, and what the direction's packet program counted."""

    sent: list[Frame]
    arrived: list[Frame]
    counts: dict[str, int]

    @property
    def lost(self) -> set[int]:
        """Numbers, from 1, of the packets that never arrived."""
        came = {frame.identity for frame in self.arrived}
        return {number for number, frame in enumerate(self.sent, 1) if frame.identity not in came}


def way_of(cell: CellFiles, host: str) -> Way:
    """The direction in which that host sends: by the captures of both ends, and by the router's count of it."""
    other, name = {"a": ("b", "forward"), "b": ("a", "backward")}[host]
    sent, arrived = (from_host(host, frames(cell.captures(node, "p1")[0])) for node in (host, other))
    programs = cell.environment["network"]["packet_programs"]
    (counts,) = (program["counts"] for program in programs if program["direction"] == name)
    assert counts["packets"] == len(sent)
    return Way(sent, arrived, counts)
