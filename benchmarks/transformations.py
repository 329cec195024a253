"""Changes of a capture that leave what happened as it was, or take a known part of it away (benchmarks/metamorphic.py).

A capture is a list of frames in the order of the file. IPv4 and IPv6 in Ethernet, Linux cooked capture and raw IP.
"""

from __future__ import annotations

import bisect
import dataclasses
import io
import random
import struct
from collections.abc import Callable, Sequence
from pathlib import Path

import zstandard

ETHERNET, RAW, COOKED = 1, 101, 113
HEADERS = {ETHERNET: 14, RAW: 0, COOKED: 16}
TYPE_AT = {ETHERNET: 12, COOKED: 14}
TCP, SCTP = 6, 132
MS = 1_000_000
MAGIC = {0xA1B2C3D4: 1000, 0xA1B23C4D: 1}


@dataclasses.dataclass(frozen=True)
class Frame:
    """time_ns: since 1970; data: as captured; length: on the wire."""

    time_ns: int
    data: bytes
    length: int


@dataclasses.dataclass(frozen=True)
class Frames:
    """A capture."""

    link_type: int
    frames: tuple[Frame, ...]

    @property
    def header(self) -> int:
        """Bytes before the IP header."""
        return HEADERS[self.link_type]

    def pcap(self, *, order: str = "<", nanoseconds: bool = True) -> bytes:
        """As a file."""
        magic = 0xA1B23C4D if nanoseconds else 0xA1B2C3D4
        parts = [struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 262144, self.link_type)]
        for frame in self.frames:
            seconds, rest = divmod(frame.time_ns, 1_000_000_000)
            rest = rest if nanoseconds else rest // 1000
            parts.append(struct.pack(order + "IIII", seconds, rest, len(frame.data), frame.length) + frame.data)
        return b"".join(parts)

    def pcapng(self) -> bytes:
        """As a file of pcapng, times in ns."""
        option = struct.pack("<HHB3x", 9, 1, 9) + struct.pack("<HH", 0, 0)
        parts = [struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28)]
        size = 20 + len(option)
        parts.append(struct.pack("<IIHHI", 1, size, self.link_type, 0, 262144) + option + struct.pack("<I", size))
        for frame in self.frames:
            padded = frame.data + b"\0" * (-len(frame.data) % 4)
            size, high, low = 32 + len(padded), frame.time_ns >> 32, frame.time_ns & 0xFFFFFFFF
            head = struct.pack("<IIIIIII", 6, size, 0, high, low, len(frame.data), frame.length)
            parts.append(head + padded + struct.pack("<I", size))
        return b"".join(parts)

    def of(self, frames: Sequence[Frame]) -> Frames:
        """Other frames of the same link."""
        return dataclasses.replace(self, frames=tuple(frames))

    def each(self, change: Callable[[Frame], Frame]) -> Frames:
        """Every frame changed."""
        return self.of([change(frame) for frame in self.frames])


def read_frames(path: Path) -> Frames:
    """A pcap file, plain or in zstd."""
    raw = path.read_bytes()
    if raw[:4] == b"\x28\xb5\x2f\xfd":
        raw = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(raw)).read()
    order = "<" if struct.unpack("<I", raw[:4])[0] in MAGIC else ">"
    unit = MAGIC[struct.unpack(order + "I", raw[:4])[0]]
    link_type = struct.unpack(order + "I", raw[20:24])[0] & 0xFFFF
    frames, at = [], 24
    while at + 16 <= len(raw):
        seconds, rest, captured, length = struct.unpack(order + "IIII", raw[at : at + 16])
        data = raw[at + 16 : at + 16 + captured]
        frames.append(Frame(seconds * 1_000_000_000 + rest * unit, data, length))
        at += 16 + captured
    return Frames(link_type, tuple(frames))


def is_ipv4(frames: Frames, frame: Frame) -> bool:
    """Whether an IPv4 packet is in the frame."""
    at = TYPE_AT.get(frames.link_type)
    typed = at is None or frame.data[at : at + 2] == b"\x08\x00"
    return typed and len(frame.data) >= frames.header + 20 and frame.data[frames.header] >> 4 == 4


def source(frames: Frames, frame: Frame) -> bytes:
    """The source address; b"": no IP packet."""
    ip = frame.data[frames.header :]
    return ip[12:16] if ip[:1] and ip[0] >> 4 == 4 else ip[8:24] if ip[:1] and ip[0] >> 4 == 6 else b""


def in_order(frames: Frames, new: Sequence[Frame]) -> Frames:
    """Sorted by time, equal times as they were."""
    return frames.of(sorted(new, key=lambda frame: frame.time_ns))


def copies(frames: Frames, times: int, jitter_ns: int, seed: int = 0) -> Frames:
    """Each packet captured so often, within the jitter, as at several interfaces of one host."""
    draw = random.Random(seed)
    result = []
    for frame in frames.frames:
        for copy in range(times):
            later = (copy * 3000 if not jitter_ns else draw.randrange(1000, jitter_ns)) if copy else 0
            result.append(dataclasses.replace(frame, time_ns=frame.time_ns + later))
    return in_order(frames, result) if times_of(frames) == sorted(times_of(frames)) else frames.of(result)


def with_number(frames: Frames, number: int | None) -> Frames:
    """IPv4's identification; None: drawn, another in each packet."""
    draw = random.Random(1)

    def change(frame: Frame) -> Frame:
        if not is_ipv4(frames, frame):
            return frame
        at = frames.header + 4
        value = draw.randrange(1, 2**16) if number is None else number
        return dataclasses.replace(frame, data=frame.data[:at] + struct.pack("!H", value) + frame.data[at + 2 :])

    return frames.each(change)


def to_ipv6(frames: Frames) -> Frames:
    """IPv4 packets as IPv6: addresses 2001:db8::a.b.c.d; checksums stay as they were."""

    def address(four: bytes) -> bytes:
        return b"\x20\x01\x0d\xb8" + bytes(8) + four

    def change(frame: Frame) -> Frame:
        if not is_ipv4(frames, frame):
            return frame
        ip = frame.data[frames.header :]
        head, whole = (ip[0] & 15) * 4, struct.unpack("!H", ip[2:4])[0]
        fixed = struct.pack("!IHBB", 6 << 28 | ip[1] << 20, whole - head, ip[9], ip[8])
        link, at = frame.data[: frames.header], TYPE_AT.get(frames.link_type)
        if at is not None:
            link = link[:at] + b"\x86\xdd" + link[at + 2 :]
        body = ip[head : max(whole, head)]
        data = link + fixed + address(ip[12:16]) + address(ip[16:20]) + body
        return dataclasses.replace(frame, data=data, length=frames.header + 40 + max(whole - head, 0))

    return frames.each(change)


def one_way(frames: Frames, end: int) -> Frames:
    """Only what one of the addresses of the first packet's path sent, and others of its side."""
    first = next((frame for frame in frames.frames if source(frames, frame)), None)
    if first is None:
        return frames
    ip = first.data[frames.header :]
    here = source(frames, first)
    there = ip[16:20] if ip[0] >> 4 == 4 else ip[24:40]
    mine = {here} if end == 0 else {there}
    return frames.of([frame for frame in frames.frames if source(frames, frame) in mine])


def shifted(frames: Frames, by_ns: int) -> Frames:
    """All times later."""
    return frames.each(lambda frame: dataclasses.replace(frame, time_ns=frame.time_ns + by_ns))


def set_back(frames: Frames, at: float, by_ns: int) -> Frames:
    """The capturing clock is set back once, at a share of the packets."""
    place = int(len(frames.frames) * at)
    moved = [dataclasses.replace(frame, time_ns=frame.time_ns - by_ns) for frame in frames.frames[place:]]
    return frames.of([*frames.frames[:place], *moved])


def without(frames: Frames, begin: float, end: float) -> Frames:
    """The packets between two shares of the file are gone."""
    low, high = (int(len(frames.frames) * share) for share in (begin, end))
    return frames.of([*frames.frames[:low], *frames.frames[high:]])


def with_tag(frames: Frames) -> Frames:
    """Each frame in a VLAN."""
    if frames.link_type != ETHERNET:
        return frames

    def change(frame: Frame) -> Frame:
        data = frame.data[:12] + b"\x81\x00\x00\x05" + frame.data[12:]
        return dataclasses.replace(frame, data=data, length=frame.length + 4)

    return frames.each(change)


def in_tunnel(frames: Frames) -> Frames:
    """IPv4 packets in GRE between two other addresses."""

    def change(frame: Frame) -> Frame:
        if not is_ipv4(frames, frame):
            return frame
        inner = frame.data[frames.header :]
        whole = 24 + struct.unpack("!H", inner[2:4])[0]
        outer = struct.pack("!BBHHHBBH", 0x45, 0, whole, 0, 0, 64, 47, 0) + bytes([192, 0, 2, 1, 192, 0, 2, 2])
        data = frame.data[: frames.header] + outer + b"\0\0\x08\0" + inner
        return dataclasses.replace(frame, data=data, length=frame.length + 24)

    return frames.each(change)


def in_mpls(frames: Frames) -> Frames:
    """IPv4 packets of Ethernet behind two labels of MPLS (RFC 3032)."""
    if frames.link_type != ETHERNET:
        return frames
    labels = struct.pack("!II", 100 << 12 | 64, 200 << 12 | 1 << 8 | 64)

    def change(frame: Frame) -> Frame:
        if not is_ipv4(frames, frame) or frame.data[12:14] != b"\x08\x00":
            return frame
        data = frame.data[:12] + b"\x88\x47" + labels + frame.data[14:]
        return dataclasses.replace(frame, data=data, length=frame.length + 8)

    return frames.each(change)


def in_udp(frames: Frames, port: int, head: Callable[[bytes], bytes]) -> Frames:
    """IPv4 packets in UDP between two other addresses, behind what `head` makes of each."""

    def change(frame: Frame) -> Frame:
        if not is_ipv4(frames, frame):
            return frame
        inner = frame.data[frames.header :]
        size = struct.unpack("!H", inner[2:4])[0]
        front = head(inner)
        whole = 28 + len(front) + size
        outer = struct.pack("!BBHHHBBH", 0x45, 0, whole, 0, 0, 64, 17, 0) + bytes([192, 0, 2, 1, 192, 0, 2, 2])
        udp = struct.pack("!HHHH", port, port, whole - 20, 0)
        data = frame.data[: frames.header] + outer + udp + front + inner
        return dataclasses.replace(frame, data=data, length=frame.length + 28 + len(front))

    return frames.each(change)


def in_vxlan(frames: Frames) -> Frames:
    """In VXLAN (RFC 7348)."""
    ethernet = bytes(range(12)) + b"\x08\x00"
    return in_udp(frames, 4789, lambda inner: struct.pack("!II", 0x0800_0000, 7 << 8) + ethernet)


def in_gtp(frames: Frames) -> Frames:
    """In GTP-U (TS 29.281): a T-PDU without options."""
    size = struct.Struct("!H")
    return in_udp(frames, 2152, lambda inner: struct.pack("!BBHI", 0x30, 255, *size.unpack(inner[2:4]), 77))


def stretched(frames: Frames, times: float) -> Frames:
    """All times so many times as far from the first."""
    first = min(times_of(frames), default=0)
    return frames.each(lambda frame: dataclasses.replace(frame, time_ns=first + round((frame.time_ns - first) * times)))


def merged(frames: Frames, other: Frames) -> Frames:
    """Both, in the order of time; of one instant the first one's packets come first."""
    return frames.of(sorted([*frames.frames, *other.frames], key=lambda frame: frame.time_ns))


def split_segments(frames: Frames, least: int = 600) -> Frames:
    """Segments of at least so many bytes of data become two, 100 ns apart, as a network card splits them (TSO). Only
    pure data of IPv4 and TCP.
    """
    result: list[Frame] = []
    for frame in frames.frames:
        result += _halves_of(frames, frame, least) or [frame]
    return in_order(frames, result)


def _halves_of(frames: Frames, frame: Frame, least: int) -> list[Frame]:
    ip = frame.data[frames.header :]
    if not is_ipv4(frames, frame) or ip[9] != TCP or struct.unpack("!H", ip[6:8])[0] & 0x3FFF:
        return []
    head = (ip[0] & 15) * 4
    offset = (ip[head + 12] >> 4) * 4 if len(ip) > head + 13 else 0
    size = struct.unpack("!H", ip[2:4])[0] - head - offset
    if not offset or len(ip) < head + offset or size < least or ip[head + 13] & 0xF7 != 0x10:
        return []
    tcp, body, first = ip[head : head + offset], ip[head + offset :], size // 2
    seq = struct.unpack("!I", tcp[4:8])[0]
    parts = []
    for number, (begin, count) in enumerate(((0, first), (first, size - first))):
        flags = tcp[13] if number else tcp[13] & 0xF7
        its = tcp[:4] + struct.pack("!I", (seq + begin) % 2**32) + tcp[8:13] + bytes([flags]) + tcp[14:]
        whole = head + offset + count
        data = frame.data[: frames.header] + ip[:2] + struct.pack("!H", whole) + ip[4:head] + its
        captured = body[begin : begin + count]
        parts.append(Frame(frame.time_ns + 100 * number, data + captured, frames.header + whole))
    return parts


def other_addresses(frames: Frames) -> Frames:
    """10.a.b.c becomes 172.a.b.c, in IP's header only: SCTP's INITs say addresses too, so of TCP."""

    def change(frame: Frame) -> Frame:
        if not is_ipv4(frames, frame):
            return frame
        at = frames.header + 12
        mapped = bytes([172 if frame.data[at] == 10 else frame.data[at], *frame.data[at + 1 : at + 4]])
        other = bytes([172 if frame.data[at + 4] == 10 else frame.data[at + 4], *frame.data[at + 5 : at + 8]])
        return dataclasses.replace(frame, data=frame.data[:at] + mapped + other + frame.data[at + 8 :])

    return frames.each(change)


PORT_BITS = 0x0101
"""What ports are changed by."""


def ends_of(frames: Frames, frame: Frame) -> list[tuple[bytes, int]]:
    """Address and port of both ends of a TCP segment of IPv4; nothing of others, and of later fragments."""
    ip = frame.data[frames.header :]
    if not is_ipv4(frames, frame) or ip[9] != TCP or struct.unpack("!H", ip[6:8])[0] & 0x1FFF:
        return []
    head = (ip[0] & 15) * 4
    ports = struct.unpack("!HH", ip[head : head + 4]) if len(ip) >= head + 4 else ()
    return list(zip((ip[12:16], ip[16:20]), ports, strict=False))


def other_ports(frames: Frames) -> Frames:
    """TCP's ports with other bits."""

    def change(frame: Frame) -> Frame:
        ends = ends_of(frames, frame)
        if len(ends) < 2:
            return frame
        at = frames.header + (frame.data[frames.header] & 15) * 4
        ports = struct.pack("!HH", *(port ^ PORT_BITS for _, port in ends))
        return dataclasses.replace(frame, data=frame.data[:at] + ports + frame.data[at + 4 :])

    return frames.each(change)


def with_others(frames: Frames, added: Sequence[tuple[float, bytes]]) -> Frames:
    """IP packets put in, each at a share of the file's packets, at the time of the packet there."""
    result = list(frames.frames)
    model = next((frame.data[: frames.header] for frame in result if is_ipv4(frames, frame)), None)
    if model is None:
        return frames
    for share, packet in sorted(added, reverse=True):
        place = int(len(frames.frames) * share)
        time_ns = result[min(place, len(result) - 1)].time_ns
        result.insert(place, Frame(time_ns, model + packet, len(model) + len(packet)))
    return frames.of(result)


def ipv4(protocol: int, body: bytes, from_: bytes, to: bytes) -> bytes:
    """An IPv4 packet."""
    return struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(body), 7, 0, 64, protocol, 0) + from_ + to + body


def tcp_ends(frames: Frames) -> tuple[bytes, bytes, bytes]:
    """The addresses and the four bytes of ports of the first TCP packet of IPv4; b"": there is none."""
    for frame in frames.frames:
        ip = frame.data[frames.header :]
        if is_ipv4(frames, frame) and ip[9] == TCP:
            head = (ip[0] & 15) * 4
            return ip[12:16], ip[16:20], ip[head : head + 4]
    return b"", b"", b""


def merged_segments(frames: Frames, most: int = 65_000) -> Frames:
    """Segments that follow each other in one direction within 30 us become one, as a receiving interface does it (GRO).
    Only pure data of IPv4 and TCP with equal flags, acknowledgement and options.
    """
    result: list[Frame] = []
    for frame in frames.frames:
        joined = _joined(frames, result[-1], frame, most) if result else None
        if joined is None:
            result.append(frame)
        else:
            result[-1] = joined
    return frames.of(result)


def _joined(frames: Frames, one: Frame, other: Frame, most: int) -> Frame | None:
    """Both segments as one, cut where the first was."""
    parts = []
    for frame in (one, other):
        ip = frame.data[frames.header :]
        if not is_ipv4(frames, frame) or ip[9] != TCP:
            return None
        head = (ip[0] & 15) * 4
        offset = (ip[head + 12] >> 4) * 4 if len(ip) > head + 12 else 0
        whole = struct.unpack("!H", ip[2:4])[0]
        if not offset or len(ip) < head + offset:
            return None
        seq = struct.unpack("!I", ip[head + 4 : head + 8])[0]
        parts.append((ip[:head], ip[head : head + offset], ip[head + offset : whole], whole - head - offset, seq))
    (ip, tcp, body, size, seq), (ip2, tcp2, more, size2, seq2) = parts
    same = ip[12:20] == ip2[12:20] and tcp[:4] == tcp2[:4] and tcp[8:13] == tcp2[8:13] and tcp[14:16] == tcp2[14:16]
    same = same and tcp[20:] == tcp2[20:] and tcp[13] & 0xF7 == tcp2[13] & 0xF7 == 0x10
    if not (same and size and size2 and (seq + size) % 2**32 == seq2):
        return None
    whole = len(ip) + len(tcp) + size + size2
    if other.time_ns - one.time_ns > 30_000 or whole > most:
        return None
    flags = tcp[:13] + bytes([tcp[13] | tcp2[13]]) + tcp[14:]
    data = one.data[: frames.header] + ip[:2] + struct.pack("!H", whole) + ip[4:] + flags + body
    return Frame(other.time_ns, data + more if len(body) == size else data, frames.header + whole)


def times_of(frames: Frames) -> list[int]:
    """All times."""
    return [frame.time_ns for frame in frames.frames]


def until(frames: Frames, time_ns: int) -> Frames:
    """The packets up to a time."""
    return frames.of(frames.frames[: bisect.bisect_right(times_of(frames), time_ns)])
