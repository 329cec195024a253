"""The first packet that differs between two captures."""

from __future__ import annotations

import struct
import tracemalloc
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from netwarp.captures.first_difference import (
    behaviour_difference_of_files,
    difference_of_files,
    first_behaviour_difference,
    first_packet_difference,
    packets_since,
)
from netwarp.core.errors import CaptureError
from netwarp.core.limits import raised
from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether

Packets = list[tuple[int, bytes]]
HEADER = struct.pack("=IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, 1)


def pcap(packets: Packets) -> bytes:
    records = (struct.pack("=IIII", *divmod(at, 10**9), len(data), len(data)) + data for at, data in packets)
    return HEADER + b"".join(records)


PACKETS = st.lists(st.tuples(st.integers(0, 2**60), st.binary(max_size=40)), max_size=8)


@given(PACKETS, PACKETS)
def test_it_is_the_first_where_lists_differ(a: Packets, b: Packets) -> None:
    difference = first_packet_difference(pcap(a), pcap(b))
    both = min(len(a), len(b))
    at = next((row for row in range(both) if a[row] != b[row]), both)
    if at == len(a) == len(b):
        assert difference is None
        return
    assert difference is not None and difference.number == at + 1
    assert (difference.a_ns, difference.b_ns) == tuple(one[at][0] if at < len(one) else None for one in (a, b))


def test_its_words() -> None:
    def words(a: Packets, b: Packets) -> str:
        difference = first_packet_difference(pcap(a), pcap(b))
        assert difference is not None
        return difference.words(10**9)

    same = (10**9, b"x")
    assert words([same, (2 * 10**9, b"y")], [same, (2 * 10**9, b"z")]) == "packet 2, at 1.000000000 s: its bytes differ"
    assert words([same], [(10**9 + 5, b"x")]) == "packet 1: one at 0.000000000 s here, one at 0.000000005 s there"
    assert words([same], [same, same]) == "packet 2: no more packets here, one at 0.000000000 s there"


@pytest.mark.parametrize("cut", [1, 23, 25, 39, 41])
def test_what_is_no_capture_is_an_error(cut: int) -> None:
    whole = pcap([(1, b"abc")])
    with pytest.raises(CaptureError):
        first_packet_difference(whole[:cut], whole)


@pytest.mark.parametrize("compared", ["packets", "behaviour", "since"])
def test_a_capture_that_expands_is_read_packet_by_packet(compared: str, tmp_path: Path) -> None:
    """Files of some kilobytes that hold 256 MiB of empty packets."""
    files = []
    for name in "ab":
        packer = zstandard.ZstdCompressor().compressobj(size=len(HEADER) + (256 << 20))
        blocks = [packer.compress(HEADER), *(packer.compress(bytes(1 << 20)) for _ in range(256)), packer.flush()]
        files.append(tmp_path / f"{name}.pcap.zst")
        files[-1].write_bytes(b"".join(blocks))
    (tmp_path / "out").mkdir()
    tracemalloc.start()
    try:
        with raised(["cell-packets=900"]), pytest.raises(CaptureError, match="those of 900 packets"):
            if compared == "packets":
                difference_of_files(files[0], files[1])
            elif compared == "behaviour":
                behaviour_difference_of_files(files[0], files[1], 0)
            else:
                packets_since(files[0], 0, tmp_path / "out")
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()


def test_files_plain_and_compressed_are_compared(tmp_path: Path) -> None:
    content = pcap([(10**9, b"x"), (2 * 10**9, b"y")])
    (tmp_path / "a.pcap").write_bytes(content)
    (tmp_path / "b.pcap.zst").write_bytes(zstandard.ZstdCompressor().compress(content))
    assert difference_of_files(tmp_path / "a.pcap", tmp_path / "b.pcap.zst") is None
    (tmp_path / "out").mkdir()
    kept = packets_since(tmp_path / "b.pcap.zst", 2 * 10**9, tmp_path / "out")
    assert kept.read_bytes() == pcap([(2 * 10**9, b"y")])


# what two kernels did, as frames of scapy's: another's encoder
A, B = "10.0.0.1", "10.0.1.2"


def tcp(source: str, seq: int, payload: int = 0, flags: str = "A", ack: int = 1, **fields: int) -> bytes:
    ends = {"src": source, "dst": B if source == A else A}
    ports = {"sport": 5000, "dport": 80} if source == A else {"sport": 80, "dport": 5000}
    ttl = fields.pop("ttl", 64)
    packet = Ether() / IP(**ends, ttl=ttl) / TCP(**ports, seq=seq, ack=ack, flags=flags, **fields) / (b"x" * payload)
    return bytes(packet)


def behaviour(a: list[bytes], b: list[bytes]) -> str:
    files = [pcap([(10**9 + number, frame) for number, frame in enumerate(frames)]) for frames in (a, b)]
    difference = first_behaviour_difference(*files, within_ns=0)
    assert difference is not None
    return difference.what


OPENING = [tcp(A, 100, flags="S"), tcp(B, 900, flags="SA", ack=101), tcp(A, 101, ack=901)]


def test_another_packet_is_told_by_what_each_one_does() -> None:
    data, ack = tcp(A, 101, 1000, ack=901), tcp(B, 901, ack=101)
    words = behaviour([*OPENING, data, ack], [*OPENING, ack, data])
    assert words == (
        f"data 1 to 1000 from {A} in A, ACK 1 from {B} in B; A has ACK 1 from {B} 1 packet later; "
        f"B has data 1 to 1000 from {A} 1 packet later"
    )


def test_an_abort_is_told_and_no_field_of_it() -> None:
    words = behaviour([*OPENING, tcp(A, 101, 1000, ack=901)], [*OPENING, tcp(B, 901, flags="R", ack=0, ttl=63)])
    assert "RST from 10.0.1.2 in B" in words and "TTL" not in words and "length" not in words


def test_a_field_of_the_same_packet_is_told_with_the_packet() -> None:
    window = [tcp(A, 101, 1000, ack=901, window=size) for size in (502, 510)]
    words = behaviour([*OPENING, window[0]], [*OPENING, window[1]])
    assert words == f"data 1 to 1000 from {A}: window 502 in A, 510 in B"


def test_a_capture_that_goes_on_is_told_by_what_it_has() -> None:
    words = behaviour([*OPENING], [*OPENING, tcp(A, 101, 5, ack=901)])
    assert words == f"data 1 to 5 from {A} in B; A has no more packets"


def test_chunks_are_named() -> None:
    def sctp(chunks: bytes) -> bytes:
        return bytes(Ether() / IP(src=A, dst=B, proto=132) / (struct.pack("!HHII", 5000, 38412, 7, 0) + chunks))

    abort, heartbeat = struct.pack("!BBH", 6, 0, 4), struct.pack("!BBHHH", 4, 0, 8, 1, 4)
    assert behaviour([sctp(heartbeat)], [sctp(abort)]) == f"HEARTBEAT from {A} in A, ABORT from {A} in B"
