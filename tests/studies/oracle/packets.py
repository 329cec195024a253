"""Reads a capture, packet by packet: pcap with nanoseconds, Ethernet, IPv4 or IPv6, TCP, SCTP, UDP, ICMP."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import zstandard

ICMP, TCP, UDP, ICMP6, SCTP = 1, 6, 17, 58, 132
FIN, SYN, RST, ACK = 1, 2, 4, 16
DATA, INIT, INIT_ACK, SACK, ABORT, SHUTDOWN, COOKIE_ECHO, COOKIE_ACK, I_DATA = 0, 1, 2, 3, 6, 7, 10, 11, 64
FORWARD_TSN, I_FORWARD_TSN = 192, 194
CE = 3


@dataclass(slots=True)
class Chunk:
    """A chunk of SCTP (RFC 9260 3.2). user_bytes: of DATA and I-DATA. value: its body."""

    kind: int
    flags: int
    value: bytes
    tsn: int = 0
    stream: int = 0
    user_bytes: int = 0


@dataclass(slots=True)
class Packet:
    """An IP packet. t: ns. mark: what stays the same on its way (all but hop limit, ECN and header checksum)."""

    t: int
    source: str
    destination: str
    protocol: int
    ip_bytes: int
    ecn: int
    mark: bytes
    fragment: bool = False
    sport: int = 0
    dport: int = 0
    payload_bytes: int = 0
    seq: int = 0
    ack: int = 0
    flags: int = 0
    window: int = 0
    options: bytes = b""
    tag: int = 0
    chunks: list[Chunk] = field(default_factory=list)
    payload: bytes = b""
    good: bool = True
    """False: a wrong checksum (looked at where links corrupt)."""
    heard: bool = True
    """False: IP does not pass it on to its transport: a wrong header or length."""
    to_mac: bytes = b""

    @property
    def is_sack(self) -> bool:
        """True if it has a SACK chunk."""
        return any(chunk.kind == SACK for chunk in self.chunks)


def read_packets(path: Path, *, checksums: bool = False) -> list[Packet]:
    """Every IP packet of a capture, in its order."""
    data = path.read_bytes()
    if path.suffix == ".zst":
        data = zstandard.ZstdDecompressor().stream_reader(data).read()
    magic, _, _, _, _, _, link_type = struct.unpack_from("<IHHiIII", data)
    assert magic == 0xA1B23C4D and link_type == 1, (path, hex(magic), link_type)
    packets, at = [], 24
    while at < len(data):
        seconds, fraction, kept, length = struct.unpack_from("<IIII", data, at)
        assert kept == length, "a capture is of whole packets"
        frame = data[at + 16 : at + 16 + kept]
        at += 16 + kept
        packet = _packet(seconds * 10**9 + fraction, frame, checksums)
        if packet is not None:
            packets.append(packet)
    return packets


def _packet(t: int, frame: bytes, checksums: bool) -> Packet | None:
    kind = struct.unpack_from(">H", frame, 12)[0]
    ip = frame[14:]
    if kind == 0x0800:
        length = struct.unpack_from(">H", ip, 2)[0]
        head = (ip[0] & 15) * 4
        pieces = struct.unpack_from(">H", ip, 6)[0] & 0x3FFF
        source, destination = (".".join(map(str, ip[at : at + 4])) for at in (12, 16))
        body = ip[head:length]
        packet = Packet(t, source, destination, ip[9], length, ip[1] & 3,
                        ip[4:6] + ip[9:10] + ip[12:20] + body, fragment=bool(pieces))  # fmt: skip
        pseudo = ip[12:20] + struct.pack(">HH", ip[9], len(body))
        packet.good = packet.heard = not checksums or _ones(ip[:head]) == 0xFFFF  # RFC 791 3.1
    elif kind == 0x86DD:
        length = 40 + struct.unpack_from(">H", ip, 4)[0]
        following, at = ip[6], 40
        split = False
        while following in (0, 43, 44, 60):
            if following == 44:
                split = True
                following, at = ip[at], at + 8
            else:
                following, at = ip[at], at + (ip[at + 1] + 1) * 8
        source, destination = (_address6(ip[at_ : at_ + 16]) for at_ in (8, 24))
        body = ip[at:length]
        packet = Packet(t, source, destination, following, length, (ip[1] >> 4) & 3,
                        ip[1:4][1:] + ip[8:40] + body, fragment=split)  # fmt: skip
        pseudo = ip[8:40] + struct.pack(">II", len(body), following)
        packet.heard = ip[0] >> 4 == 6 and length <= len(ip) and ip[8] != 0xFF  # a multicast address sends nothing
    else:
        return None
    packet.to_mac = frame[:6]
    if not packet.fragment:
        _transport(packet, body)
        if checksums:
            packet.good &= _checked(packet.protocol, pseudo, body)
    return packet


def _address6(raw: bytes) -> str:
    return ":".join(f"{part:x}" for part in struct.unpack(">8H", raw))


def _transport(packet: Packet, body: bytes) -> None:
    if packet.protocol == TCP and len(body) >= 20:
        packet.sport, packet.dport, packet.seq, packet.ack = struct.unpack_from(">HHII", body)
        head = (body[12] >> 4) * 4
        packet.flags = body[13]
        packet.window = struct.unpack_from(">H", body, 14)[0]
        packet.options = body[20:head]
        packet.payload_bytes = len(body) - head
    elif packet.protocol == UDP and len(body) >= 8:
        packet.sport, packet.dport, length = struct.unpack_from(">HHH", body)
        packet.payload = body[8:length]
        packet.payload_bytes = length - 8
    elif packet.protocol == SCTP and len(body) >= 12:
        packet.sport, packet.dport, packet.tag = struct.unpack_from(">HHI", body)
        packet.chunks = list(_chunks(body))
        packet.payload_bytes = sum(chunk.user_bytes for chunk in packet.chunks)


def _chunks(body: bytes) -> Iterator[Chunk]:
    at = 12
    while at + 4 <= len(body):
        kind, flags, length = struct.unpack_from(">BBH", body, at)
        if length < 4:
            return
        chunk = Chunk(kind, flags, body[at + 4 : at + length])
        if kind in (DATA, I_DATA) and length >= 16 and len(chunk.value) >= 12:
            chunk.tsn, chunk.stream = struct.unpack_from(">IH", body, at + 4)
            chunk.user_bytes = length - (16 if kind == DATA else 20)
        yield chunk
        at += (length + 3) // 4 * 4


def _checked(protocol: int, pseudo: bytes, body: bytes) -> bool:
    if protocol == SCTP:
        zeroed = body[:8] + bytes(4) + body[12:]
        return _crc32c(zeroed) == struct.unpack_from("<I", body, 8)[0]
    if protocol not in (TCP, UDP):
        return True
    return _ones(pseudo + body) == 0xFFFF


def _ones(whole: bytes) -> int:
    """The ones' complement sum (RFC 1071)."""
    whole += bytes(len(whole) % 2)
    total = sum(struct.unpack(f">{len(whole) // 2}H", whole))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


_TABLE = []
for _byte in range(256):
    for _ in range(8):
        _byte = (_byte >> 1) ^ (0x82F63B78 if _byte & 1 else 0)
    _TABLE.append(_byte)


def _crc32c(data: bytes) -> int:
    """RFC 9260 appendix A."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ _TABLE[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF
