"""SCTP messages of associations written by hand: delivery, head-of-line delay, fragments, bundling."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from netwarp.captures.sctp.messages import messages
from support.captures import ISN, T, association, chunk, data_chunk, has, pcap, read, sack_chunk, sctp, timed
from support.sctp_story import MS, Packet, analyze, at_receiver, data, handshake, sack


def test_head_of_line_delay_by_stream_and_as_one_stream(tmp_path: Path) -> None:
    """Stream 1's first message comes late: it holds up its second, and nothing of stream 2."""
    packets = at_receiver(
        data(200, 1, stream=2, ssn=0),
        data(210, 2, stream=1, ssn=1),
        data(220, 3, stream=2, ssn=1),
        data(300, 0, stream=1, ssn=0),
    )
    analysis = analyze(tmp_path, packets)
    assert analysis.point == "receiver"
    one, two = analysis.tables["streams"]
    assert (one["stream"], one["hol_blocking_mean_s"]) == (1, pytest.approx(0.045))
    assert (one["hol_blocking_one_stream_mean_s"], two["hol_blocking_one_stream_mean_s"]) == (
        pytest.approx(0.045),
        pytest.approx(0.09),
    )
    assert (two["stream"], two["hol_blocking_mean_s"]) == (2, 0)
    has(
        analysis.totals,
        hol_blocking_mean_s=pytest.approx(0.0225),
        hol_blocking_one_stream_max_s=pytest.approx(0.1),
        t3_expiries=None,
    )


def test_unordered_messages_wait_for_nobody(tmp_path: Path) -> None:
    late = round(300 * MS), sctp(22, data_chunk(ISN, 10, ssn=0))
    packets = at_receiver((200 * MS, sctp(22, data_chunk(ISN + 1, 10, flags=7))), late)
    received = analyze(tmp_path, packets).messages
    assert (received.delivery_ns - received.arrival_ns).tolist() == [0, 0]
    assert received.waits_as_one_ns.tolist() == [0, 100 * MS]


def test_fragments_make_a_message_and_a_missing_one_holds_up_its_stream(tmp_path: Path) -> None:
    def fragment(at_ms: int, tsn: int, flags: int, stream: int = 0, ssn: int = 0) -> Packet:
        return at_ms * MS, sctp(22, data_chunk(ISN + tsn, 50, stream=stream, ssn=ssn, flags=flags))

    packets = at_receiver(
        fragment(200, 0, 2), fragment(201, 1, 0), fragment(202, 2, 1),  # whole
        fragment(203, 3, 2, ssn=1), fragment(204, 5, 1, ssn=1),  # 4 never arrives
        fragment(205, 6, 3, ssn=2), fragment(206, 7, 3, stream=9),
    )  # fmt: skip
    analysis = analyze(tmp_path, packets)
    received = analysis.messages
    assert analysis.totals["complete_messages"] == 3
    assert received.payload_bytes[received.delivered].tolist() == [150, 50]
    assert received.stream[received.delivered].tolist() == [0, 9]
    assert received.delivered_as_one.sum() == 1
    assert analysis.tables["fragmentation"] == [{"fragments": 1, "messages": 4}, {"fragments": 3, "messages": 1}]


def test_forward_tsn_lets_the_stream_go_on(tmp_path: Path) -> None:
    """RFC 3758 3.6: what was given up no longer holds up what comes after it."""
    forward = 400 * MS, sctp(22, chunk(192, struct.pack("!I", (ISN + 1) % 2**32)))
    packets = at_receiver(data(200, 0), data(210, 2), forward, data(500, 3))
    analysis = analyze(tmp_path, packets)
    received = analysis.messages
    has(received, tsn=[0, 2, 3], waits_ns=[0, 190 * MS, 0], waits_as_one_ns=[0, 190 * MS, 0])
    without = analyze(tmp_path, [packet for packet in packets if packet is not forward]).messages
    assert without.delivered.tolist() == [True, False, False]


def test_what_comes_behind_the_forward_tsn_that_covers_it_is_not_delivered(tmp_path: Path) -> None:
    """The receiver counts it as a duplicate (RFC 3758 3.6): it was given up, and overtaken by that word."""
    forward = 400 * MS, sctp(22, chunk(192, struct.pack("!I", (ISN + 1) % 2**32)))
    given_up = at_receiver(data(200, 0), data(210, 2), forward, data(450, 1), data(500, 3))
    late = analyze(tmp_path, given_up).messages
    assert late.tsn[late.delivered].tolist() == [0, 2, 3]
    in_time = analyze(tmp_path, at_receiver(data(200, 0), data(210, 2), data(390, 1), forward, data(500, 3))).messages
    assert in_time.tsn[in_time.delivered].tolist() == [0, 1, 2, 3]


def test_a_message_given_up_before_its_rest_had_a_tsn_ends_where_the_next_begins(tmp_path: Path) -> None:
    """The first fragment is lost, the second arrives, the third never left: FORWARD TSN passes what had left."""
    forward = 400 * MS, sctp(22, chunk(192, struct.pack("!I", (ISN + 2) % 2**32)))
    middle = 220 * MS, sctp(22, data_chunk(ISN + 2, ssn=1, flags=0))
    received = analyze(tmp_path, at_receiver(data(200, 0), middle, data(230, 3, ssn=2), forward)).messages
    has(received, delivered=[True, False, True], waits_ns=[0, 170 * MS], waits_as_one_ns=[0, 170 * MS])


def test_a_stream_that_was_reset_begins_anew(tmp_path: Path) -> None:
    """RFC 6525 5.2.2: the next SSN is 0, though nothing is missing. Any other number out of turn waits."""
    reset = 220 * MS, sctp(22, chunk(130, bytes(20)))
    packets = at_receiver(data(200, 0), data(210, 1), reset, data(230, 2, ssn=0), data(250, 4, ssn=2))
    waits = analyze(tmp_path, [*packets, data(260, 3, ssn=1)]).messages.waits_ns
    assert waits.tolist() == [0, 0, 0, 0, 10 * MS]
    odd = analyze(tmp_path, at_receiver(data(200, 0), data(210, 1, ssn=7)))
    assert odd.messages.delivered.tolist() == [True, False]


def test_abandoned_chunks(tmp_path: Path) -> None:
    forward = 400 * MS, sctp(22, chunk(192, struct.pack("!I", (ISN + 2) % 2**32)))
    packets = [*handshake(), *(data(200 + n, n) for n in range(3)), sack(300, -1, [(1, 1)]), forward, sack(500, 2)]
    assert analyze(tmp_path, packets).totals["abandoned_chunks"] == 2


def i_data(tsn: int, mid: int, fsn: int, flags: int, *, stream: int = 0, ppid: int = 46, size: int = 50) -> bytes:
    """RFC 8260 2.1: PPID in the first fragment, FSN in the others."""
    value = struct.pack("!IHHII", (ISN + tsn) % 2**32, stream, 0, mid, ppid if flags & 2 else fsn)
    return chunk(64, value + b"i" * size, flags)


def test_interleaved_messages(tmp_path: Path) -> None:
    """Two messages' fragments take turns; a third, unordered, has a MID of its own numbering."""
    packets = at_receiver(
        (200 * MS, sctp(22, i_data(0, 0, 0, 2, stream=1))),
        (201 * MS, sctp(22, i_data(1, 0, 0, 2, stream=2, ppid=60))),
        (202 * MS, sctp(22, i_data(3, 0, 1, 1, stream=2))),
        (203 * MS, sctp(22, i_data(4, 0, 0, 7, stream=1))),
        (204 * MS, sctp(22, i_data(5, 1, 0, 3, stream=1))),
        (205 * MS, sctp(22, i_data(2, 0, 1, 1, stream=1))),
    )
    analysis = analyze(tmp_path, packets)
    received = analysis.messages
    assert received.complete.all()
    assert received.delivered.all()
    has(received, tsn=[0, 1, 4, 5], fragments=[2, 2, 1, 1])
    assert (received.arrival_ns - T).tolist() == [205 * MS, 202 * MS, 203 * MS, 204 * MS]
    assert received.waits_ns.tolist() == [0, 0, 0, 1 * MS]
    names = {row["ppid"]: (row["name"], row["messages"]) for row in analysis.tables["payloads"]}
    assert names == {46: ("Diameter", 3), 60: ("NGAP", 1)}


@pytest.mark.parametrize("second", [1, 0])
def test_fragments_are_numbered_by_the_rfc_or_as_linux_does(tmp_path: Path, second: int) -> None:
    """RFC 8260 2.1: the fragment behind the first is number 1. Linux: 0 (6.12, sctp_chunk_assign_mid())."""
    packets = at_receiver(
        (200 * MS, sctp(22, i_data(0, 0, 0, 2, stream=1))),
        (201 * MS, sctp(22, i_data(1, 0, 0, 2, stream=2))),
        (202 * MS, sctp(22, i_data(2, 0, second, 0, stream=1))),
        (203 * MS, sctp(22, i_data(3, 0, second, 1, stream=2))),
        (204 * MS, sctp(22, i_data(4, 0, second + 1, 1, stream=1))),
    )
    received = analyze(tmp_path, packets).messages
    has(received, complete=[True, True], fragments=[3, 2])
    assert (received.arrival_ns - T).tolist() == [204 * MS, 203 * MS]


def test_a_capture_begun_in_the_middle_takes_what_it_sees_first(tmp_path: Path) -> None:
    packets = [data(0, 7, stream=3), data(1, 9, stream=3), data(2, 8, stream=3), sack(50, 9)]
    analysis = analyze(tmp_path, packets)
    assert analysis.point == "unknown"
    assert analysis.messages.delivered.all()
    assert analysis.totals["hol_blocking_max_s"] == pytest.approx(0.001)


def test_bundling(tmp_path: Path) -> None:
    both = 300 * MS, sctp(22, sack_chunk(8999), data_chunk(ISN + 5))
    analysis = analyze(tmp_path, [*handshake(), data(200, 0, 1, 2), data(201, 3, 4), both])
    rows = [row for row in analysis.tables["bundling"] if row["direction"] == "data" and row["what"] == "data chunks"]
    assert [(row["per_packet"], row["packets"]) for row in rows] == [(1, 1), (2, 1), (3, 1)]
    names = {row["name"]: (row["data"], row["back"]) for row in analysis.tables["chunks"]}
    assert names == {
        "DATA": (6, 0), "INIT": (1, 0), "INIT ACK": (0, 1), "SACK": (1, 0), "COOKIE ECHO": (1, 0), "COOKIE ACK": (0, 1),
    }  # fmt: skip


def test_an_association_without_data_has_no_messages(tmp_path: Path) -> None:
    capture = read(tmp_path, pcap(timed(association())))
    assert len(messages(capture.chunks).tsn) == 0
    assert messages(capture.chunks).waits_ns.dtype == np.int64
