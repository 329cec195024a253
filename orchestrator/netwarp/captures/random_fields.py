"""Packets without what a stack draws at random: initial numbers, tags, cookies, keys, ephemeral ports.

Two kernels, or two seeds, draw other numbers. What is left is what a stack decides: its packets are equal if the
clauses of `Plain` are. Numbers that count (sequence numbers, TSNs, time stamps) are kept, from the first of their
direction on; what is drawn counts by its length, and so does payload, which follows the seed.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from ..core import wire

STAMPS = ("time stamp", "echoed time stamp")
"""Names of the clauses that are a reading of TCP's clock."""
_EPHEMERAL = 32768
"""The first port that Linux draws by itself (net.ipv4.ip_local_port_range)."""
_WORD = 1 << 32
_IPV4, _IPV6, _VLAN = 0x0800, 0x86DD, 0x8100
_END, _NOP, _SACK_OPTION, _TIMESTAMPS, _MPTCP, _FAST_OPEN = 0, 1, 5, 8, 30, 34
_STATE_COOKIE, _RANDOM = 7, 0x8002
_OPAQUE_CHUNKS = frozenset([wire.HEARTBEAT, wire.HEARTBEAT_ACK, wire.COOKIE_ECHO])


@dataclass(slots=True)
class Plain:
    """Reads the packets of one capture in their order, each as (name, value) pairs that two captures of equal behaviour
    share.
    """

    _ports: dict[int, int] = field(default_factory=dict)
    _first: dict[tuple[object, ...], int] = field(default_factory=dict)

    def clauses(self, frame: bytes) -> tuple[tuple[str, object], ...]:
        """Of an Ethernet frame. What is cut off or of another protocol is its bytes."""
        try:
            return tuple(self._ethernet(frame))
        except (struct.error, IndexError):
            return (("bytes of the frame", frame),)

    def _ethernet(self, frame: bytes) -> Iterator[tuple[str, object]]:
        kind, at = struct.unpack_from("!H", frame, 12)[0], 14
        while kind == _VLAN:
            yield "VLAN", frame[at : at + 2]
            kind, at = struct.unpack_from("!H", frame, at + 2)[0], at + 4
        yield "length of the frame", len(frame)
        yield from self._ip(kind, frame[at:])

    def _ip(self, kind: int, packet: bytes) -> Iterator[tuple[str, object]]:
        if kind == _IPV4:
            header = (packet[0] & 15) * 4
            tos, length = packet[1], struct.unpack_from("!H", packet, 2)[0]
            yield "fragment", packet[6:8]
            yield "TTL", packet[8]
            protocol, ends, body = packet[9], (packet[12:16], packet[16:20]), packet[header:length]
        elif kind == _IPV6:
            tos = struct.unpack_from("!H", packet)[0] >> 4 & 255
            yield "hop limit", packet[7]
            protocol, ends, body = packet[6], (packet[8:24], packet[24:40]), packet[40:]
        else:
            yield "bytes of the packet", (kind, packet)
            return
        yield "TOS", tos
        yield "addresses", ends
        yield "IP protocol", protocol
        reader = {wire.TCP: self._tcp, wire.SCTP: self._sctp, wire.UDP: self._udp}.get(protocol)
        if reader is not None:
            yield from reader(ends, body)
        elif protocol in (wire.ICMP, wire.ICMPV6):
            yield "ICMP", (body[:2], len(body))
        else:
            yield "bytes of the packet", body

    def _port(self, port: int) -> object:
        """A port that was asked for as it is, one that was drawn by the order of its first packet."""
        if port < _EPHEMERAL:
            return port
        return "drawn", self._ports.setdefault(port, len(self._ports))

    def _since_first(self, name: str, way: tuple[object, ...], number: int) -> int:
        """The number counted from the first of its kind in its direction."""
        return (number - self._first.setdefault((name, *way), number)) % _WORD

    def _udp(self, ends: tuple[bytes, bytes], body: bytes) -> Iterator[tuple[str, object]]:
        yield "ports", tuple(map(self._port, struct.unpack_from("!HH", body)))
        yield "length of the datagram", len(body)

    def _tcp(self, ends: tuple[bytes, bytes], body: bytes) -> Iterator[tuple[str, object]]:
        sport, dport, seq, ack, offset, flags, window = struct.unpack_from("!HHIIBBH", body)
        way = (ends[0], sport, ends[1], dport)
        back = (ends[1], dport, ends[0], sport)
        yield "ports", (self._port(sport), self._port(dport))
        yield "TCP flags", (flags, offset & 15)
        if flags & wire.SYN:  # of a connection that takes the addresses of an earlier one
            for name in ("sequence number", "time stamp"):
                self._first.pop((name, *way), None)
        yield "sequence number", self._since_first("sequence number", way, seq)
        yield "acknowledgement", self._since_first("sequence number", back, ack) if flags & wire.ACK else None
        yield "window", window
        yield from self._tcp_options(body[20 : (offset >> 4) * 4], way, back)
        yield "payload bytes", len(body) - (offset >> 4) * 4

    def _tcp_options(
        self, options: bytes, way: tuple[object, ...], back: tuple[object, ...]
    ) -> Iterator[tuple[str, object]]:
        at = 0
        while at < len(options) and (kind := options[at]) != _END:
            if kind == _NOP:
                at += 1
                continue
            length = options[at + 1]
            value = options[at + 2 : at + length]
            if kind == _TIMESTAMPS:
                stamp, echo = struct.unpack("!II", value)
                yield "time stamp", self._since_first("time stamp", way, stamp)
                yield "echoed time stamp", echo and self._since_first("time stamp", back, echo)
            elif kind == _SACK_OPTION:
                edges = struct.unpack(f"!{len(value) // 4}I", value)
                yield "SACK", tuple(self._since_first("sequence number", back, edge) for edge in edges)
            elif kind == _MPTCP:  # keys, tokens, HMACs, data sequence numbers that begin with a key's hash
                yield "MPTCP option", (value[0] >> 4, length)
            elif kind == _FAST_OPEN:
                yield "fast open", length
            else:
                yield "TCP option", (kind, value)
            at += max(length, 2)

    def _sctp(self, ends: tuple[bytes, bytes], body: bytes) -> Iterator[tuple[str, object]]:
        sport, dport = struct.unpack_from("!HH", body)
        # without addresses: an association's paths share their numbers
        way: tuple[object, ...] = (self._port(sport), self._port(dport))
        back = way[::-1]
        yield "ports", way
        if sport == dport:
            way, back = (*way, ends[0] < ends[1]), (*back, ends[1] < ends[0])
        at = 12
        while at + 4 <= len(body):
            kind, flags, length = struct.unpack_from("!BBH", body, at)
            yield "chunk", (wire.CHUNK_NAMES.get(kind, kind), flags, length)
            yield from self._chunk(kind, body[at + 4 : at + length], way, back)
            at += max(4, length + 3 & ~3)

    def _chunk(
        self, kind: int, value: bytes, way: tuple[object, ...], back: tuple[object, ...]
    ) -> Iterator[tuple[str, object]]:
        if kind in (wire.DATA, wire.I_DATA):
            yield "TSN", self._since_first("TSN", way, struct.unpack_from("!I", value)[0])
            header = 12 if kind == wire.DATA else 16
            yield "stream, message and protocol", value[4:header]
            yield "payload bytes", len(value) - header
        elif kind in (wire.INIT, wire.INIT_ACK):
            self._first["TSN", *way] = struct.unpack_from("!I", value, 12)[0]
            yield "window and streams", value[4:12]
            yield from _parameters(value[16:])
        elif kind == wire.SACK:
            cumulative, window, gaps, doubles = struct.unpack_from("!IIHH", value)
            yield "cumulative TSN", self._since_first("TSN", back, cumulative)
            yield "window", window
            yield "gaps", value[12 : 12 + 4 * gaps]
            twice = struct.unpack_from(f"!{doubles}I", value, 12 + 4 * gaps)
            yield "TSNs received twice", tuple(self._since_first("TSN", back, tsn) for tsn in twice)
        elif kind in (wire.SHUTDOWN, wire.FORWARD_TSN, wire.I_FORWARD_TSN):
            of = back if kind == wire.SHUTDOWN else way
            yield "cumulative TSN", self._since_first("TSN", of, struct.unpack_from("!I", value)[0])
            yield "rest of the chunk", value[4:]
        elif kind in (wire.ASCONF, wire.ASCONF_ACK, wire.RE_CONFIG):
            yield "length of the chunk", len(value)
        elif kind not in _OPAQUE_CHUNKS:
            yield "rest of the chunk", value


def _parameters(value: bytes) -> Iterator[tuple[str, object]]:
    """Of INIT and INIT ACK: cookie and random bytes by their length."""
    at = 0
    while at + 4 <= len(value):
        kind, length = struct.unpack_from("!HH", value, at)
        drawn = kind in (_STATE_COOKIE, _RANDOM)
        yield "parameter", (kind, length if drawn else value[at + 4 : at + length])
        at += max(4, length + 3 & ~3)
