"""Properties of any capture, and a plain model of retransmissions that the core must agree with."""

from __future__ import annotations

import itertools
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from netwarp.captures import Capture, read_captures
from netwarp.captures.mptcp import MAPPED, data_level
from netwarp.captures.native import layouts
from support.capture_bytes import assert_same_tables, read_bytes, records
from support.captures import chunk, data_chunk, has, init_chunk, pcap, recorded, sack_chunk, sctp, segment

FEW = settings(max_examples=60)
COUNTED = ["paths", "flow_paths", "packets", "segments", "chunks", "sacks", "blocks"]


SEGMENTS = st.lists(st.tuples(st.integers(0, 400), st.integers(1, 90)), min_size=1, max_size=60)
BASES = st.sampled_from([0, 1, 2**31 - 100, 2**31, 2**32 - 200, 2**32 - 1])


@FEW
@given(SEGMENTS, BASES)
def test_new_bytes_of_any_segments_agree_with_a_set_of_bytes(sent: list[tuple[int, int]], base: int) -> None:
    packets = [(0, segment(base, flags="S"))]
    packets += [(i + 1, segment(base + 1 + at, size)) for i, (at, size) in enumerate(sent)]
    segments = read_bytes(pcap(packets)).segments[1:]
    seen: set[int] = set()
    for row, (at, size) in zip(segments, sent, strict=True):
        these = set(range(at, at + size))
        has(row, seq=1 + at, new_bytes=len(these - seen), is_retransmission=bool(these & seen))
        seen |= these


def test_thousands_of_holes_agree_with_a_set_of_numbers() -> None:
    """Enough disjoint ranges to split the core's runs many times, then filled from everywhere."""
    random = np.random.default_rng(3)
    every = np.concatenate([np.arange(0, 12_000, 2), random.permutation(12_000), random.permutation(12_000)])
    paths = random.integers(1, 3, len(every))
    packets = [(0, sctp(0, init_chunk(1, 0))), (1, sctp(1, init_chunk(2, 0, ack=True), back=True))]
    packets += [
        (i + 2, sctp(2, data_chunk(tsn, 1), path=path))
        for i, (tsn, path) in enumerate(zip(every.tolist(), paths.tolist(), strict=True))
    ]
    chunks = read_bytes(pcap(packets)).chunks[2:]
    first: dict[int, int] = {}
    for row, tsn, path in zip(chunks, every.tolist(), paths.tolist(), strict=True):
        has(row, tsn=tsn, is_retransmission=tsn in first, on_other_path=first.get(tsn, path) != path)
        first.setdefault(tsn, path)


@FEW
@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 3)), min_size=1, max_size=120), BASES)
def test_any_tsns_on_any_paths_agree_with_a_dictionary(sent: list[tuple[int, int]], base: int) -> None:
    packets = [(0, sctp(0, init_chunk(1, base))), (1, sctp(1, init_chunk(2, 0, ack=True), back=True))]
    packets += [(i + 2, sctp(2, data_chunk(base + tsn, 1), path=path)) for i, (tsn, path) in enumerate(sent)]
    first: dict[int, int] = {}
    for row, (tsn, path) in zip(read_bytes(pcap(packets)).chunks[2:], sent, strict=True):
        has(row, tsn=tsn, is_retransmission=tsn in first, on_other_path=first.setdefault(tsn, path) != path)


def shifted_tcp(frame: bytes, forward: int, backward: int) -> bytes:
    """The segment with both directions' sequence numbers moved (no SACK option is touched: checksums are not read)."""
    if frame[12:14] != b"\x08\x00" or frame[23] != 6:
        return frame
    tcp = 14 + (frame[14] & 15) * 4
    sport, dport, seq, ack = struct.unpack_from("!HHII", frame, tcp)
    mine, theirs = (forward, backward) if dport == 5001 else (backward, forward)
    changed = struct.pack("!HHII", sport, dport, (seq + mine) % 2**32, (ack + theirs) % 2**32)
    options = bytearray(frame[tcp + 20 : tcp + (frame[tcp + 12] >> 4) * 4])
    at = 0
    while at < len(options) and options[at]:
        if options[at] == 1:
            at += 1
            continue
        if options[at] == 5:
            for place in range(at + 2, at + options[at + 1], 4):
                edge = struct.unpack_from("!I", options, place)[0]
                struct.pack_into("!I", options, place, (edge + theirs) % 2**32)
        at += options[at + 1]
    return frame[:tcp] + changed + frame[tcp + 12 : tcp + 20] + bytes(options) + frame[tcp + 20 + len(options) :]


@settings(max_examples=8)
@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
def test_shifting_tcp_numbers_through_the_wrap_changes_nothing(forward: int, backward: int) -> None:
    original = records(recorded("tcp", "a", ["p1"])[0])
    base = read_captures(recorded("tcp", "a", ["p1"]))
    # the wrap lies in the middle of the transfer, wherever the draw puts it
    forward = (2**32 - int(base.flows["base"][0][0]) - forward % 500_000) % 2**32
    moved = [(time, shifted_tcp(frame, forward, backward), length) for time, frame, length in original]
    other = read_bytes(pcap(moved))
    assert other.flows["base"][0].tolist() != base.flows["base"][0].tolist()
    assert_same_tables(base, other, COUNTED)


@pytest.mark.parametrize(("name", "links"), [("tcp", ["p1"]), ("sctp", ["p1", "p2"]), ("mptcp", ["p1", "p2"])])
@settings(max_examples=6)
@given(cuts=st.lists(st.floats(0, 1), min_size=1, max_size=3))
def test_splitting_a_capture_changes_nothing(name: str, links: list[str], cuts: list[float]) -> None:
    files = recorded(name, "a", links)
    parts = []
    for file in files:
        rows = records(file)
        places = [0, *sorted(int(cut * len(rows)) for cut in cuts), len(rows)]
        parts += [pcap(rows[low:high]) for low, high in itertools.pairwise(places)]
    assert_same_tables(read_captures(files), read_bytes(*parts), COUNTED, {"source", "interface"})


@FEW
@given(st.permutations(range(8)))
def test_the_order_of_equal_times_changes_no_total(order: list[int]) -> None:
    """Distinct data, SACKs and heartbeats of one instant in any order: the same totals, the same TSNs new."""
    handshake = [(0, sctp(0, init_chunk(1, 7))), (1, sctp(1, init_chunk(2, 9, ack=True), back=True))]
    burst = [sctp(2, data_chunk(7 + tsn, 10), path=1 + tsn % 2) for tsn in range(5)]
    burst += [sctp(1, sack_chunk(7), back=True), sctp(2, chunk(4, b"h"), path=2), sctp(1, sack_chunk(8), back=True)]
    straight = read_bytes(pcap([*handshake, *((2, packet) for packet in burst)]))
    mixed = read_bytes(pcap([*handshake, *((2, burst[place]) for place in order)]))

    def totals(capture: Capture) -> list[tuple[str, list[object]]]:
        found = []
        for row in capture.flow_paths:
            pair = [capture.address(row["path"], side) for side in (row["path_direction"], 1 - row["path_direction"])]
            found.append(
                (
                    pair[0],
                    [
                        row[name].tolist()
                        for name in capture.flow_paths.dtype.names or ()
                        if name not in ("path", "path_direction")
                    ],
                )
            )
        return sorted(found, key=lambda one: one[0])

    assert totals(straight) == totals(mixed)
    for capture in (straight, mixed):
        data = capture.chunks[capture.chunks["type"] == 0]
        assert sorted(data["tsn"].tolist()) == [0, 1, 2, 3, 4]
        assert not data["is_retransmission"].any()


PIECES = st.lists(st.tuples(st.integers(0, 300), st.integers(1, 60), st.integers(0, 2)), min_size=1, max_size=50)


@FEW
@given(PIECES, st.sampled_from([0, 1, 2**31 - 7, 2**63 - 1, 2**63 - 100, -(2**63), -9]))
def test_mptcp_data_level_agrees_with_a_set_of_bytes(sent: list[tuple[int, int, int]], base: int) -> None:
    rows = np.zeros(len(sent), dtype=layouts()["segments"])
    for row, (at, size, path) in zip(rows, sent, strict=True):
        row["dsn"] = (base + at + 2**63) % 2**64 - 2**63
        row["options"] = MAPPED
        row["payload_bytes"], row["path"], row["flow"], row["seq"] = size, path, path, at
    level = data_level(rows)
    first: dict[int, int] = {}
    for number, (at, size, path) in enumerate(sent):
        these = range(at, at + size)
        assert level.new_bytes[number] == sum(byte not in first for byte in these)
        assert level.seen[number] == any(byte in first for byte in these)
        assert level.elsewhere[number] == any(first.get(byte, path) != path for byte in these)
        for byte in these:
            first.setdefault(byte, path)
    assert level.known.all()
