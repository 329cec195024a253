"""New payload and retransmissions at one capture point: by sequence number, TSN, data sequence number or datagram."""

from __future__ import annotations

import hashlib
import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

from .packets import ACK, DATA, FIN, I_DATA, RST, SCTP, SYN, TCP, UDP, Packet

MODULO = 1 << 32
DSS, MP_CAPABLE = 2, 0


class Seen:
    """A set of whole numbers as intervals, in order and apart."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []

    def add(self, start: int, end: int) -> int:
        """Add [start, end); how many of them were not there."""
        if end <= start:
            return 0
        first, last = bisect_left(self._ends, start), bisect_right(self._starts, end)
        touched = range(first, last)
        old = sum(max(0, min(end, self._ends[at]) - max(start, self._starts[at])) for at in touched)
        fresh = end - start - old
        if first < last:
            start, end = min(start, self._starts[first]), max(end, self._ends[last - 1])
        self._starts[first:last], self._ends[first:last] = [start], [end]
        return fresh


@dataclass
class Row:
    """A packet in the data direction, and what it brings to the capture point."""

    packet: Packet
    new_bytes: int = 0
    repeats: bool = False
    """It carries something that its sender had sent before."""


@dataclass
class Connection:
    """The sequence space of one TCP connection in one direction."""

    first: int
    spaces: Seen = field(default_factory=Seen)
    mappings: list[tuple[int, int, int]] = field(default_factory=list)
    """MPTCP: (subflow's relative start, length, data sequence number)."""


def _options(raw: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(raw):
        kind = raw[at]
        if kind == 0:
            return
        if kind == 1:
            at += 1
            continue
        if at + 1 >= len(raw) or raw[at + 1] < 2:
            return
        yield kind, raw[at + 2 : at + raw[at + 1]]
        at += raw[at + 1]


def option(packet: Packet, kind: int) -> bytes | None:
    """The body of the first option of TCP of that kind."""
    return next((body for found, body in _options(packet.options) if found == kind), None)


def rows_of(packets: list[Packet], protocol: str) -> list[Row]:
    """What each packet of one direction brings. packets: in the order of time, of one flow."""
    match protocol:
        case "sctp":
            return list(_sctp(packets))
        case "udp":
            return list(_datagrams(packets))
        case "mptcp":
            return list(_mptcp(packets))
        case _:
            return list(_tcp(packets))


def relative(number: int, first: int) -> int:
    difference = (number - first) % MODULO
    return difference - MODULO if difference >= MODULO // 2 else difference


def _tcp(packets: list[Packet]) -> Iterator[Row]:
    known: dict[tuple[str, str, int, int], Connection] = {}
    for packet in packets:
        key = (packet.source, packet.destination, packet.sport, packet.dport)
        here = known.get(key)
        if here is None or (packet.flags & SYN and packet.seq != here.first):
            begin = packet.seq if packet.flags & SYN else (packet.seq - 1) % MODULO
            here = known[key] = Connection(begin)
        yield _in_space(packet, here)


def _in_space(packet: Packet, here: Connection) -> Row:
    start = relative(packet.seq, here.first)
    row = Row(packet)
    if packet.flags & RST:
        return row
    occupied = 0
    fresh = 0
    if packet.flags & SYN:
        occupied, fresh = 1, here.spaces.add(0, 1)
        start = 1
    if packet.payload_bytes:
        row.new_bytes = here.spaces.add(start, start + packet.payload_bytes)
        occupied, fresh = occupied + packet.payload_bytes, fresh + row.new_bytes
    if packet.flags & FIN:
        end = start + packet.payload_bytes
        occupied, fresh = occupied + 1, fresh + here.spaces.add(end, end + 1)
    row.repeats = fresh < occupied
    return row


def _mptcp(packets: list[Packet]) -> Iterator[Row]:
    """By data sequence number (RFC 8684 3.3), of which the low 32 bits are enough here."""
    known: dict[tuple[str, str, int, int], Connection] = {}
    whole: Seen | None = None
    origin: int | None = None
    for packet in packets:
        key = (packet.source, packet.destination, packet.sport, packet.dport)
        here = known.get(key)
        if here is None or (packet.flags & SYN and packet.seq != here.first):
            begin = packet.seq if packet.flags & SYN else (packet.seq - 1) % MODULO
            here = known[key] = Connection(begin)
        start = relative(packet.seq, here.first)
        for kind, body in _options(packet.options):
            if kind != 30 or not body:
                continue
            if body[0] >> 4 == MP_CAPABLE and not packet.flags & SYN and len(body) >= 10:
                digest = hashlib.sha256(body[2:10]).digest()
                origin = int.from_bytes(digest[-4:], "big") + 1
                whole = whole or Seen()
                if len(body) >= 20:
                    length = struct.unpack_from(">H", body, 18)[0]
                    here.mappings.append((1, length, origin % MODULO))
            elif body[0] >> 4 == DSS and body[1] & 4:
                at = 2
                if body[1] & 1:
                    at += 8 if body[1] & 2 else 4
                if body[1] & 8:
                    number, at = struct.unpack_from(">Q", body, at)[0], at + 8
                else:
                    number, at = struct.unpack_from(">I", body, at)[0], at + 4
                subflow, length = struct.unpack_from(">IH", body, at)
                if length and subflow:
                    here.mappings.append((subflow, length, number % MODULO))
        row = Row(packet)
        subflow_row = _in_space(packet, here)
        row.repeats = subflow_row.repeats
        if packet.payload_bytes and not packet.flags & RST and whole is not None and origin is not None:
            mapping = next((each for each in reversed(here.mappings) if each[0] <= start < each[0] + each[1]), None)
            if mapping is None:
                raise Unjudged("payload of MPTCP without a mapping")
            place = relative(mapping[2] + start - mapping[0], origin)
            row.new_bytes = whole.add(place, place + packet.payload_bytes)
            row.repeats = row.repeats or row.new_bytes < packet.payload_bytes
        elif packet.payload_bytes and whole is None:
            raise Unjudged("payload of MPTCP before a key")
        yield row


class Unjudged(Exception):
    """The oracle cannot say anything of this flow; why."""


def _sctp(packets: list[Packet]) -> Iterator[Row]:
    known: dict[int, set[int]] = {}
    for packet in packets:
        row = Row(packet)
        for chunk in packet.chunks:
            if chunk.kind not in (DATA, I_DATA):
                continue
            seen = known.setdefault(packet.tag, set())
            if chunk.tsn in seen:
                row.repeats = True
            else:
                seen.add(chunk.tsn)
                row.new_bytes += chunk.user_bytes
        yield row


def _datagrams(packets: list[Packet]) -> Iterator[Row]:
    """netwarp's own UDP: the first eight bytes are a datagram's number (docs/formats.md)."""
    seen: set[bytes] = set()
    for packet in packets:
        number = packet.payload[:8]
        fresh = number not in seen
        seen.add(number)
        yield Row(packet, packet.payload_bytes if fresh else 0, not fresh)


def acknowledges(packet: Packet) -> bool:
    """TCP's ACK flag, a SACK chunk."""
    return packet.is_sack if packet.protocol == SCTP else packet.protocol == TCP and bool(packet.flags & ACK)


def protocol_number(protocol: str) -> int:
    """Of IP."""
    return {"sctp": SCTP, "udp": UDP}.get(protocol, TCP)
