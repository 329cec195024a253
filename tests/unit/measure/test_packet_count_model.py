"""Header arithmetic: how many packets a transfer must take, against packing chunk by chunk and the paper's example."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from netwarp.measure.models.packet_count_model import Count, fragments, largest_fragment, sctp_packets, tcp_segments


def packed_one_by_one(total: int, message: int, mtu: int, fragment: int) -> Count:
    """Every chunk of every message laid into packets by hand."""
    room, sizes = mtu // 4 * 4 - 32, []
    for start in range(0, total, message):
        left = min(message, total - start)
        while left:
            sizes.append(min(left, fragment))
            left -= sizes[-1]
    packets, used = 0, room + 1
    for size in sizes:
        chunk = 16 + size + (-size) % 4
        if used + chunk > room:
            packets, used = packets + 1, 0
        used += chunk
    return Count(packets, len(sizes))


@settings(max_examples=60)
@given(
    total=st.integers(1, 30_000),
    message=st.integers(1, 9000),
    mtu=st.integers(512, 1600),
    mss=st.none() | st.integers(88, 1600),
)
def test_repeating_the_packing_of_one_message_is_packing_all_of_them(
    total: int, message: int, mtu: int, mss: int | None
) -> None:
    fragment = largest_fragment(mtu, mss)
    assert sum(fragments(message, fragment)) == message
    assert sctp_packets(total, message, mtu, fragment) == packed_one_by_one(total, message, mtu, fragment)


@pytest.mark.parametrize(
    ("message", "chunks", "packets"),
    [(716, 2, 1), (717, 2, 2), (1452, 1, 1), (1453, 2, 2), (2048, 2, 2), (8192, 6, 6), (64, 18, 1), (65536, 46, 46)],
)
def test_the_cliffs(message: int, chunks: int, packets: int) -> None:
    """32 B of headers, 16 B a chunk: 716 B fit twice (1496 B), 717 B do not (1504 B), 1453 B not even once."""
    messages = chunks if message < 1453 else 1
    assert sctp_packets(message * messages, message, 1500, largest_fragment(1500)) == Count(packets, chunks)


def test_the_paper_s_transfers_and_example() -> None:
    """ha2005: 73,242 packets of 8192-B messages, 97,656 of 2048-B ones, 69,061 segments; 15 against 11 packets."""
    whole = largest_fragment(1500)
    assert sctp_packets(100_000_000, 8192, 1500, whole) == Count(73_242, 73_243)  # the last message is of 256 B
    assert sctp_packets(100_000_000, 2048, 1500, whole) == Count(97_656, 97_657)
    assert tcp_segments(100_000_000, 8192, 1448).low == 69_061
    assert sctp_packets(5 * 2048, 2048, 1048, largest_fragment(1048)) == Count(15, 15)
    assert sctp_packets(5 * 2048, 2048, 1500, 1000).low == 10  # SCTP_MAXSEG limits the chunk, not the packet
    assert tcp_segments(5 * 2048, 2048, 1000) == Count(11, 15)
