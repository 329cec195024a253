"""The first packet that differs between two captures."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from netwarp.captures.first_difference import first_packet_difference
from netwarp.core.errors import CaptureError

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
