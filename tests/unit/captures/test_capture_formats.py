"""The C core and capture files: their formats, compressed, cut off, merged."""

from __future__ import annotations

import bz2
import gzip
import lzma
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
import zstandard
from netwarp.captures import read_captures
from netwarp.core.errors import CaptureError
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from support.captures import (
    NS,
    US,
    T,
    check_transfer,
    data_chunk,
    ether,
    has,
    lz4_frame,
    pcap,
    read,
    recorded,
    sctp,
    segment,
    tcp_transfer,
)


@pytest.mark.parametrize("magic", [NS, US])
@pytest.mark.parametrize("order", ["<", ">"])
def test_pcap_in_both_byte_orders_and_resolutions(tmp_path: Path, magic: int, order: str) -> None:
    capture = read(tmp_path, pcap(tcp_transfer(), magic=magic, order=order))
    check_transfer(capture)
    step = 1 if magic == NS else 1000
    assert capture.packets["time_ns"].tolist() == [(T + i * 1_000_000) // step * step for i in range(10)]
    source = capture.sources[0]
    has(source, nanosecond=magic == NS, big_endian=order == ">", file_bytes=len(pcap(tcp_transfer())))


PACKERS = {
    "gzip": (1, gzip.compress),
    "zstd": (2, zstandard.ZstdCompressor().compress),
    "zstd with checksum": (2, zstandard.ZstdCompressor(write_checksum=True).compress),
    "xz": (3, lzma.compress),
    "bzip2": (4, bz2.compress),
    "lz4": (5, lz4_frame),
}


@pytest.mark.parametrize("kind", PACKERS)
def test_compressed_captures(tmp_path: Path, kind: str) -> None:
    """One stream or two, small or far beyond any block."""
    number, pack = PACKERS[kind]
    plain = pcap(tcp_transfer())
    for data in (pack(plain), pack(plain[:33]) + pack(plain[33:])):
        capture = read(tmp_path, data)
        check_transfer(capture)
        assert (capture.trouble, capture.sources["compression"].tolist()) == (("",), [number])
    large = pcap([(T + i, segment(1 + i * 1000, 1000)) for i in range(4000)])
    capture = read(tmp_path, pack(large))
    assert (capture.trouble, capture.sources["file_bytes"].tolist()) == (("",), [len(large)])
    assert capture.flow_paths["new_bytes"][0].tolist() == [4_000_000, 0]


@pytest.mark.parametrize("kind", PACKERS)
def test_compressed_data_cut_off_or_damaged(tmp_path: Path, kind: str) -> None:
    """Some or all packets are missing, and it is said why."""
    # incompressible payload, so that a cut in the packed data is a cut in the middle of the packets
    noise = np.random.default_rng(1).bytes(300_000)
    packets = [(T + i, ether(IP(dst="10.0.0.2") / UDP() / noise[i * 1000 : i * 1000 + 1000])) for i in range(300)]
    packed, data = PACKERS[kind][1](pcap(packets)), f"the {kind.split()[0]} data"

    def outcome(packed: bytes) -> tuple[str, int]:
        try:
            capture = read(tmp_path, packed)
        except CaptureError as error:  # bzip2 gives a block of 900 kB whole or not at all
            return str(error), 0
        return capture.trouble[0], len(capture.packets)

    for end in range(len(packed) // 3, len(packed) - 1, len(packed) // 7):
        text, count = outcome(packed[:end])
        assert f"{data} end in the middle" in text
        assert count < 300
    assert f"{data} are damaged" in outcome(packed[:6] + b"\xff" * 4000)[0]
    half = len(packed) // 2
    text, count = outcome(packed[:half] + bytes(byte ^ 0xFF for byte in packed[half : half + 2]) + packed[half + 2 :])
    assert text or count == 300


@pytest.mark.parametrize("where", [5, 16, 17, 200])
def test_a_file_cut_off_is_read_as_far_as_it_is_whole(tmp_path: Path, where: int) -> None:
    plain = pcap(tcp_transfer())
    capture = read(tmp_path, plain[:-where])
    assert capture.sources["cut_off"].tolist() == [True]
    assert "cut off in a record's" in capture.trouble[0]
    assert 7 <= len(capture.packets) <= 9
    assert capture.segments["seq"].tolist()[:7] == [0, 0, 1, 1, 401, 801, 1]


def test_a_file_that_ends_between_records_is_clean(tmp_path: Path) -> None:
    capture = read(tmp_path, pcap(tcp_transfer()[:4]))
    assert (capture.trouble, capture.sources["cut_off"].tolist()) == (("",), [False])


def whole_packets(plain: bytes) -> int:
    offset, count = 24, 0
    while offset + 16 <= len(plain):
        offset += 16 + struct.unpack_from("<I", plain, offset + 8)[0]
        count += offset <= len(plain)
    return count


def zstd_block_ends(packed: bytes) -> list[int]:
    """Where each block of a frame ends (RFC 8878 3.1.1.2)."""
    found, offset = [], zstandard.frame_header_size(packed)
    last = False
    while not last:
        header = int.from_bytes(packed[offset : offset + 3], "little")
        last, kind, size = bool(header & 1), header >> 1 & 3, header >> 3
        offset += 3 + (1 if kind == 1 else size)
        found.append(offset)
    return found


@pytest.mark.parametrize("kind", ["gzip", "zstd"])
def test_cut_compressed_data_give_every_packet_that_can_be_unpacked(tmp_path: Path, kind: str) -> None:
    """As many as zlib and zstandard themselves unpack of the same bytes: nothing is left inside the unpacker."""
    random = np.random.default_rng(2)
    frames = [ether(IP(dst="10.0.0.2") / UDP() / (random.bytes(40) * 20)) for _ in range(50)]
    plain = pcap([(T + i, frames[i % 50]) for i in range(2000)])
    packed = gzip.compress(plain) if kind == "gzip" else zstandard.ZstdCompressor(level=1).compress(plain)
    ends = list(range(1, len(packed), len(packed) // 40))
    if kind == "zstd":
        ends += zstd_block_ends(packed)[:-1]
        assert len(ends) > 50
    for end in ends:
        part = packed[:end]
        if kind == "gzip":
            unpacked = zlib.decompressobj(wbits=31).decompress(part)
        else:
            unpacked = zstandard.ZstdDecompressor().decompressobj().decompress(part)
        if len(unpacked) < 24:
            with pytest.raises(CaptureError, match="too short"):
                read(tmp_path, part)
            continue
        capture = read(tmp_path, part)
        assert len(capture.packets) == whole_packets(unpacked)
        assert "data end in the middle" in capture.trouble[0]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "too short for a capture (0 bytes)"),
        (b"\xd4\xc3\xb2\xa1", "too short for a capture (4 bytes)"),
        (b"x" * 100, "not a pcap or pcapng file (it begins with 78 78 78 78)"),
        (b"\x0a\x0d\x0d\x0a" + b"\0" * 40, "a section header of no byte order"),
        (pcap([], link_type=147), "link type 147 cannot be read"),
        (gzip.compress(b"hello", mtime=0), "too short"),
        (b"\x28\xb5\x2f\xfd" + b"\xff" * 40, "the zstd data are damaged"),
    ],
    ids=["empty", "magic alone", "text", "pcapng", "link type", "short gzip", "damaged zstd"],
)
def test_files_that_are_no_capture_are_named(tmp_path: Path, data: bytes, text: str) -> None:
    with pytest.raises(CaptureError) as error:
        read(tmp_path, data)
    assert text in str(error.value)
    assert "0.pcap" in str(error.value)


def test_a_missing_file_and_no_file(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match=r"gone\.pcap: No such file"):
        read_captures([tmp_path / "gone.pcap"])
    with pytest.raises(CaptureError, match="no capture given"):
        read_captures([])


def test_a_record_that_claims_too_much_ends_the_file(tmp_path: Path) -> None:
    data = pcap(tcp_transfer()[:3]) + struct.pack("<IIII", 1, 1, 2**31, 2**31) + b"x" * 100
    capture = read(tmp_path, data)
    assert len(capture.packets) == 3
    assert "claims 2147483648 captured bytes" in capture.trouble[0]


def test_files_are_merged_by_time_and_equal_times_by_their_order(tmp_path: Path) -> None:
    packets = tcp_transfer()
    check_transfer(read(tmp_path, pcap(packets[::2]), pcap(packets[1::2])))
    same = [(T, packet) for _, packet in packets]
    merged = read(tmp_path, pcap(same[:4]), pcap(same[4:]))
    check_transfer(merged)
    assert merged.packets["source"].tolist() == [0] * 4 + [1] * 6


def test_checksums(tmp_path: Path) -> None:
    good = segment(1, 101)
    bad = bytearray(segment(102, 100))
    bad[-3] ^= 1
    for wanted, marks, payload in ((True, [0, 32], [101]), (False, [0, 0], [101, 100])):
        capture = read(tmp_path, pcap([(T, good), (T + 1, bytes(bad))]), checksums=wanted)
        assert capture.packets["marks"].tolist() == marks
        assert capture.segments["payload_bytes"].tolist() == payload
        assert capture.sources["bad_checksum"].tolist() == [int(wanted)]
    padded = read(tmp_path, pcap([(T, segment(1, 1) + b"padding"), (T, segment(2, 1) + b"x" * 900)]), checksums=True)
    assert padded.sources["bad_checksum"].tolist() == [0]
    real = read_captures(recorded("sctp", "b", ["p1"]), checksums=True)
    assert real.sources["bad_checksum"].tolist() == [0]
    assert len(real.chunks) > 500
    # a kernel leaves the sum of the pseudo header to a card that computes the rest (RFC 9293 3.1: addresses, 6, length)
    left = bytearray(good)
    ip, header = 14, 34
    words = struct.unpack("!4H", left[ip + 12 : ip + 20])
    total = sum(words) + 6 + len(left) - header
    left[header + 16 : header + 18] = struct.pack("!H", (total & 0xFFFF) + (total >> 16))
    file = pcap([(T, bytes(left)), (T + 1, bytes(bad))])
    assert read(tmp_path, file, checksums=True).packets["marks"].tolist() == [32, 32]
    assert read(tmp_path, file, checksums=True, unfinished=True).packets["marks"].tolist() == [0, 32]
    # UDP (RFC 768; 0 is none over IPv4) and the IPv4 header itself (RFC 791 3.1): no host takes either
    datagram = bytes(Ether() / IP(src="10.0.0.1", dst="10.0.0.2") / UDP(sport=1, dport=2) / b"0123456789")
    for flipped, wanted in ((None, 0), (len(datagram) - 1, 1), (14 + 8, 1), (14 + 1, 1)):
        frame = bytearray(datagram)
        if flipped is not None:
            frame[flipped] ^= 1
        assert read(tmp_path, pcap([(T, bytes(frame))]), checksums=True).sources["bad_checksum"].tolist() == [wanted]
    without = datagram[:40] + b"\0\0" + datagram[42:-1] + b"x"
    assert read(tmp_path, pcap([(T, without)]), checksums=True).sources["bad_checksum"].tolist() == [0]
    zero_crc = read(tmp_path, pcap([(T, sctp(1, data_chunk(1)))]), checksums=True)
    assert zero_crc.sources["bad_checksum"].tolist() == [1]
