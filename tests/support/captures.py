"""Captures for tests: the recorded ones of tests/data/captures, and packets put together by hand."""

from __future__ import annotations

import ctypes
import random
import socket
import struct
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import zstandard
from netwarp.captures import Capture, FileSummary, read_captures, summarise_points
from netwarp.captures.native import UNKNOWN
from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether
from scapy.packet import Packet

DATA = Path(__file__).resolve().parents[1] / "data" / "captures"
READ_BYTES = {"sctp": 1_201_200, "bundle": 200_000, "tcp": 507_904, "mptcp": 507_904}
"""The bytes that the receiving application read, by its own record."""
POINTS = [
    *((name, node, links) for name, links in (("sctp", ("p1", "p2")), ("mptcp", ("p1", "p2"))) for node in "ab"),
    *((name, node, ("p1",)) for name in ("tcp", "bundle") for node in "ab"),
]
NS, US = 0xA1B23C4D, 0xA1B2C3D4
Timed = tuple[int, bytes]


def recorded(name: str, node: str, links: Sequence[str]) -> list[Path]:
    """The recorded files of one capture point."""
    return [DATA / f"{name}-{node}-{link}.pcap.zst" for link in links]


def pcap(
    packets: Iterable[Timed | tuple[int, bytes, int]], *, magic: int = NS, order: str = "<", link_type: int = 1
) -> bytes:
    """A capture file of (time in ns, bytes[, length on the wire])."""
    parts = [struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 262144, link_type)]
    for time_ns, data, *length in packets:
        seconds, rest = divmod(time_ns, 1_000_000_000)
        rest = rest if magic == NS else rest // 1000
        parts.append(struct.pack(order + "IIII", seconds, rest, len(data), length[0] if length else len(data)) + data)
    return b"".join(parts)


def read(tmp_path: Path, *captures: bytes, **options: object) -> Capture:
    """Read captures given as bytes, as one capture point."""
    files = []
    for number, data in enumerate(captures):
        files.append(tmp_path / f"{number}.pcap")
        files[-1].write_bytes(data)
    return read_captures(files, **options)  # type: ignore[arg-type]


def summary(tmp_path: Path, capture: bytes | Iterable[Timed], **options: object) -> FileSummary:
    """The summary of a capture given as bytes, or as packets."""
    path = tmp_path / "one.pcap"
    path.write_bytes(capture if isinstance(capture, bytes) else pcap(capture))
    (found,) = summarise_points([[path]], **options)  # type: ignore[arg-type]
    return found


def plain(path: Path) -> bytes:
    """A recorded file's content."""
    return zstandard.ZstdDecompressor().stream_reader(path.read_bytes()).read()


def damaged(path: Path, count: int, folder: Path) -> Iterator[Path]:
    """So many files in `folder`, each a recorded file's beginning with some bytes changed."""
    whole = plain(path)[:60_000]
    for seed in range(count):
        draw = random.Random(seed)
        content = bytearray(whole[: draw.randrange(24, len(whole))])
        for _ in range(draw.choice([1, 30, 1000])):
            content[draw.randrange(24, len(content))] = draw.randrange(256)
        file = folder / f"damaged{seed}.pcap"
        file.write_bytes(content)
        yield file


def has(found: Any, **expected: object) -> None:
    """Asserts the named numbers, columns of a table, or attributes."""
    got = {name: found[name] if hasattr(found, "__getitem__") else getattr(found, name) for name in expected}
    assert {name: value.tolist() if hasattr(value, "tolist") else value for name, value in got.items()} == expected


def ether(packet: Packet) -> bytes:
    """The packet in an Ethernet frame, checksums and lengths filled in."""
    return bytes(Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / packet)


def segment(
    seq: int, payload: int = 0, *, back: bool = False, flags: str = "A", ack: int = 0, **fields: object
) -> bytes:
    """A TCP segment between 10.0.0.1:1000 and 10.0.0.2:80."""
    ends = ("10.0.0.2", "10.0.0.1", 80, 1000) if back else ("10.0.0.1", "10.0.0.2", 1000, 80)
    tcp = TCP(sport=ends[2], dport=ends[3], seq=seq % 2**32, ack=ack % 2**32, flags=flags, **fields)
    return ether(IP(src=ends[0], dst=ends[1]) / tcp / (b"x" * payload))


def sctp(tag: int, *chunks: bytes, path: int = 1, back: bool = False, ports: tuple[int, int] = (1000, 80)) -> bytes:
    """An SCTP packet between 10.<path>.0.1 and 10.<path>.0.2; its CRC32c is left 0."""
    ends = (f"10.{path}.0.1", f"10.{path}.0.2", *ports)
    source, target, sport, dport = (ends[1], ends[0], ends[3], ends[2]) if back else ends
    body = struct.pack("!HHII", sport, dport, tag, 0) + b"".join(chunks)
    ends_raw = b"".join(socket.inet_aton(address) for address in (source, target))
    header = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(body), 0, 0, 64, 132, 0)  # by hand: scapy takes 0.3 ms a packet
    return b"\2\0\0\0\0\2\2\0\0\0\0\1\x08\0" + header + ends_raw + body


def chunk(kind: int, value: bytes = b"", flags: int = 0, length: int | None = None) -> bytes:
    """A chunk, padded; `length` may lie."""
    said = 4 + len(value) if length is None else length
    return struct.pack("!BBH", kind, flags, said) + value + b"\0" * (-len(value) % 4)


def data_chunk(tsn: int, size: int = 100, *, stream: int = 0, ssn: int = 0, flags: int = 3) -> bytes:
    """A DATA chunk."""
    return chunk(0, struct.pack("!IHHI", tsn % 2**32, stream, ssn % 2**16, 0) + b"d" * size, flags)


def init_chunk(tag: int, tsn: int, *, ack: bool = False, parameters: bytes = b"") -> bytes:
    """An INIT or INIT-ACK."""
    return chunk(2 if ack else 1, struct.pack("!IIHHI", tag, 100_000, 10, 5, tsn % 2**32) + parameters)


def sack_chunk(
    cumulative: int, gaps: Sequence[tuple[int, int]] = (), duplicates: Sequence[int] = (), window: int = 65536
) -> bytes:
    """A SACK."""
    value = struct.pack("!IIHH", cumulative % 2**32, window, len(gaps), len(duplicates))
    value += b"".join(struct.pack("!HH", *gap) for gap in gaps)
    return chunk(3, value + b"".join(struct.pack("!I", tsn % 2**32) for tsn in duplicates))


T = 1_700_000_000_123_456_789
ISN = 2**32 - 500  # wraps in the middle of everything below


def tcp_transfer() -> list[tuple[int, bytes]]:
    """Handshake, three segments, the second one twice, an ACK with a SACK block."""
    options = [("MSS", 1460), ("SAckOK", b""), ("Timestamp", (10, 0)), ("WScale", 7)]
    packets = [
        segment(ISN, flags="S", options=options, window=64240),
        segment(7000, back=True, flags="SA", ack=ISN + 1, options=options, window=65535),
        segment(ISN + 1, ack=7001, window=502),
        segment(ISN + 1, 400, ack=7001),
        segment(ISN + 401, 400, ack=7001),
        segment(ISN + 801, 400, ack=7001),
        segment(7001, back=True, ack=ISN + 401, options=[("SAck", ((ISN + 801) % 2**32, (ISN + 1201) % 2**32))]),
        segment(ISN + 401, 400, ack=7001),
        segment(7001, back=True, ack=ISN + 1201, window=100),
        segment(ISN + 1201, 0, flags="FA", ack=7001),
    ]
    return [(T + i * 1_000_000, packet) for i, packet in enumerate(packets)]


def check_transfer(capture: Capture) -> None:
    segments = capture.segments
    assert segments["seq"].tolist() == [0, 0, 1, 1, 401, 801, 1, 401, 1, 1201]
    assert segments["ack"].tolist() == [UNKNOWN, 1, 1, 1, 1, 1, 401, 1, 1201, 1]
    assert segments["payload_bytes"].tolist() == [0, 0, 0, 400, 400, 400, 0, 400, 0, 0]
    assert segments["new_bytes"].tolist() == [0, 0, 0, 400, 400, 400, 0, 0, 0, 0]
    assert segments["is_retransmission"].tolist() == [False] * 7 + [True, False, False]
    assert segments["window_bytes"].tolist()[:4] == [64240, 65535, 502 * 128, 8192 * 128]
    assert segments["direction"].tolist() == [0, 1, 0, 0, 0, 0, 1, 0, 1, 0]
    assert segments["sack_blocks"].tolist() == [0, 0, 0, 0, 0, 0, 1, 0, 0, 0]
    assert capture.blocks[["start", "end", "kind"]].tolist() == [(801, 1201, 2)]
    flow = capture.flows[0]
    assert len(capture.flows) == 1
    assert flow["base"].tolist() == [ISN, 7000]
    assert flow["port"].tolist() == [1000, 80]
    assert flow["mss"].tolist() == [1460, 1460]
    assert flow["window_shift"].tolist() == [7, 7]
    assert flow["ended"].tolist() == [True, False]
    total = capture.flow_paths[0]
    assert total["new_bytes"].tolist() == [1200, 0]
    assert total["payload_bytes"].tolist() == [1600, 0]
    assert total["retransmitted_packets"].tolist() == [1, 0]
    assert total["packets"].tolist() == [7, 3]


def association(*, tag: int = 11, peer: int = 22, tsn: int = ISN, path: int = 1) -> list[bytes]:
    """A handshake: its initiator's tag is `tag`, its responder's `peer`."""
    return [
        sctp(0, init_chunk(tag, tsn), path=path),
        sctp(tag, init_chunk(peer, 9000, ack=True), path=path, back=True),
        sctp(peer, chunk(10, b"cookie"), path=path),
        sctp(tag, chunk(11), path=path, back=True),
    ]


def timed(packets: list[bytes]) -> list[tuple[int, bytes]]:
    return [(T + i * 1000, packet) for i, packet in enumerate(packets)]


def lz4_frame(plain: bytes) -> bytes:
    """By lz4's own library."""
    library = ctypes.CDLL("liblz4.so.1")
    library.LZ4F_compressFrameBound.restype = library.LZ4F_compressFrame.restype = ctypes.c_size_t
    size = ctypes.c_size_t
    room = ctypes.create_string_buffer(library.LZ4F_compressFrameBound(size(len(plain)), None))
    done = library.LZ4F_compressFrame(room, size(len(room)), plain, size(len(plain)), None)
    return room.raw[:done]


def cut(frame: bytes, sizes: list[int], identity: int = 7) -> list[bytes]:
    """The frame's datagram in fragments of so many 8-byte units each, the rest in a last one."""
    ip = Ether(frame)[IP]
    data, found, at = bytes(ip.payload), [], 0
    for size in [*sizes, len(data)]:
        part = data[at : at + size * 8]
        if not part:
            break
        more = at + len(part) < len(data)
        header = IP(src=ip.src, dst=ip.dst, proto=ip.proto, id=identity, frag=at // 8, flags="MF" if more else 0)
        found.append(ether(header / part))
        at += len(part)
    return found
