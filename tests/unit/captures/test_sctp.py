"""SCTP's analysis on associations put together by hand: every number is known beforehand."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from netwarp.captures import Capture, read_captures
from netwarp.captures.native import NONE
from netwarp.captures.sctp import SctpAssociation, analyze_sctp
from netwarp.captures.sctp.messages import messages
from netwarp.captures.sctp.transmissions import NEVER
from support.captures import (
    ISN,
    T,
    association,
    chunk,
    data_chunk,
    init_chunk,
    pcap,
    read,
    recorded,
    sack_chunk,
    sctp,
    segment,
    timed,
)

MS = 1_000_000
Packet = tuple[int, bytes]


def handshake(rtt_ms: int = 100) -> list[Packet]:
    """At the initiator: tags 11 and 22, initial TSN ISN."""
    packets = association()
    return [(at * MS, packet) for at, packet in zip((0, rtt_ms, rtt_ms, 2 * rtt_ms), packets, strict=True)]


def data(at_ms: float, *tsns: int, path: int = 1, size: int = 100, stream: int = 0, ssn: int | None = None) -> Packet:
    """One packet of DATA chunks; TSNs count from ISN, SSNs are the TSNs."""
    chunks = [data_chunk(ISN + tsn, size, stream=stream, ssn=tsn if ssn is None else ssn) for tsn in tsns]
    return round(at_ms * MS), sctp(22, *chunks, path=path)


def sack(
    at_ms: float, cumulative: int, gaps: Sequence[tuple[int, int]] = (), again: Sequence[int] = (), path: int = 1
) -> Packet:
    """A SACK; gaps are TSNs, first and last."""
    blocks = [(first - cumulative, last - cumulative) for first, last in gaps]
    answer = sack_chunk(ISN + cumulative, blocks, [ISN + tsn for tsn in again])
    return round(at_ms * MS), sctp(11, answer, path=path, back=True)


def analyze(tmp_path: Path, packets: Sequence[Packet], **options: object) -> SctpAssociation:
    capture = read(tmp_path, pcap([(T + at, packet) for at, packet in packets]))
    return analyze_sctp(capture, 0, **options)  # type: ignore[arg-type]


LOST = [
    *handshake(),
    *(data(200 + n, n) for n in range(6)),
    # 1 is lost: three reports newly acknowledge more behind it
    sack(300, 0),
    sack(302, 0, [(2, 2)]),
    sack(303, 0, [(2, 3)]),
    sack(304, 0, [(2, 4)]),
    data(304, 1, path=2),
    sack(305, 0, [(2, 5)]),
    sack(404, 5, path=2),
]


def test_a_fast_retransmission(tmp_path: Path) -> None:
    found = analyze(tmp_path, LOST)
    assert (found.point, found.ended, found.from_, found.to) == ("sender", "open", "10.1.0.1:1000", "10.1.0.2:80")
    totals = found.totals
    wanted = {
        "data_chunks": 7,
        "new_data_chunks": 6,
        "user_bytes": 700,
        "new_user_bytes": 600,
        "acknowledged_chunks": 6,
        "retransmitted_chunks": 1,
        "retransmitted_other_path_chunks": 1,
        "fast_retransmitted_chunks": 1,
        "timeout_retransmitted_chunks": 0,
        "spurious_retransmitted_chunks": 0,
        "t3_expiries": 0,
        "outages": 0,
        "sacks": 6,
        "sacks_with_gaps": 4,
        "gap_blocks": 4,
        "paths": 2,
        "path_changes": 0,
        "outstanding_max_bytes": 600,
        "hol_blocking_mean_s": None,
    }
    assert {name: totals[name] for name in wanted} == wanted


def test_two_reports_are_not_enough(tmp_path: Path) -> None:
    """A third that newly acknowledges nothing above the missing TSN does not count (RFC 9260 7.2.4)."""
    packets = [*LOST[:13], sack(304, 0, [(2, 4)]), *(sack(305 + n, 0, [(2, 4)]) for n in range(9))]
    for count, fast in ((2, 0), (3, 1)):
        reports = [sack(302 + n, 0, [(2, 2 + n)]) for n in range(count)]
        packets = [*LOST[:11], *reports, *(reports[-1] for _ in range(9)), data(1305, 1), sack(1405, 5)]
        totals = analyze(tmp_path, packets).totals
        assert (totals["fast_retransmitted_chunks"], totals["timeout_retransmitted_chunks"]) == (fast, 1 - fast)


def test_in_fast_recovery_a_moving_cumulative_tsn_counts_too(tmp_path: Path) -> None:
    """1 and 3 are lost; the reports that would call 3 missing are about 1: only recovery's rule makes three of them."""
    packets = [
        *handshake(),
        *(data(200 + n, n) for n in range(12)),
        sack(300, 0),
        *(sack(302 + n, 0, [(2, 2 + n)]) for n in range(1)),
        sack(304, 0, [(2, 2), (4, 4)]),
        sack(305, 0, [(2, 2), (4, 5)]),  # third for 1, second for 3
        data(305, 1),
        sack(405, 2, [(4, 5)]),  # newly acknowledges 1 and 2 only
        data(405, 3),
        sack(505, 11),
    ]
    totals = analyze(tmp_path, packets).totals
    assert (totals["fast_retransmitted_chunks"], totals["timeout_retransmitted_chunks"]) == (2, 0)


OUTAGE = [
    *handshake(),
    *(data(200 + n, n) for n in range(3)),
    sack(300, 0),
    *(data(310 + n, 3 + n) for n in range(3)),  # 1 to 5 never arrive
    data(1400, 1, path=2),  # T3
    sack(1500, 1, path=2),
    data(1500, 2, 3, path=2),
    sack(1600, 3, path=2),
    data(1600, 4, 5, path=2),
    data(1601, 6, path=2),
    sack(1701, 6, path=2),
    data(3000, 7),
    sack(3100, 7),
]


def test_a_timeout_with_failover_and_return(tmp_path: Path) -> None:
    found = analyze(tmp_path, OUTAGE)
    totals = found.totals
    assert (totals["timeout_retransmitted_chunks"], totals["fast_retransmitted_chunks"]) == (5, 0)
    assert (totals["t3_expiries"], totals["outages"], totals["path_changes"]) == (1, 1, 2)
    assert totals["outage_longest_s"] == totals["progress_gap_longest_s"] == pytest.approx(1.2)
    (outage,) = found.tables["outages"]
    assert outage == {
        "t_s": pytest.approx(0.3),
        "path": "10.1.0.1>10.1.0.2",
        "duration_s": pytest.approx(1.2),
        "t3_expiries": 1,
        "first_retransmission_other_path_s": pytest.approx(1.1),
        "first_new_data_other_path_s": pytest.approx(1.301),
        "return_s": pytest.approx(2.7),
    }
    told = [(event["t_s"], event["what"], event["path"][:6]) for event in found.events[4:]]
    assert told == [
        (pytest.approx(0.3), "outage begins", "10.1.0"),
        (pytest.approx(1.4), "first retransmission on another path", "10.2.0"),
        (pytest.approx(1.4), "T3 expiry", "10.1.0"),
        (pytest.approx(1.601), "new data on another path", "10.2.0"),
        (pytest.approx(3.0), "new data returns to its first path", "10.1.0"),
    ]
    first, back, second, _ = found.tables["paths"]
    assert (first["new_data_chunks"], first["declared_lost_timeout_chunks"], first["t3_expiries"]) == (7, 5, 1)
    assert (second["new_data_chunks"], second["retransmitted_other_path_chunks"]) == (1, 5)
    assert (back["sacks"], back["sack_ratio"]) == (2, pytest.approx(2 / 5))
    assert first["new_data_ratio"] == pytest.approx(7 / 8)


def test_a_silence_without_anything_outstanding_is_no_outage(tmp_path: Path) -> None:
    packets = [*handshake(), data(200, 0), sack(300, 0), data(9000, 1), sack(9100, 1)]
    totals = analyze(tmp_path, packets).totals
    assert totals["outages"] == 0
    assert totals["progress_gap_longest_s"] == pytest.approx(0.1)


def test_an_outage_that_lasts_to_the_end(tmp_path: Path) -> None:
    found = analyze(tmp_path, [*handshake(), data(200, 0), data(1200, 0), data(3200, 0)])
    (outage,) = found.tables["outages"]
    assert (outage["duration_s"], outage["t3_expiries"]) == (None, 2)
    assert found.totals["outage_longest_s"] is None
    assert found.totals["progress_gap_longest_s"] == pytest.approx(3.0)


def test_what_an_expiry_marked_is_no_fast_retransmission(tmp_path: Path) -> None:
    """2 waits for room behind 1; the three reports above it come after the expiry that marked it (6.3.3)."""
    packets = [
        *handshake(),
        *(data(200 + n, n) for n in range(7)),
        sack(300, 0),
        data(1310, 1),
        sack(1410, 1, [(3, 3)]),
        sack(1411, 1, [(3, 4)]),
        sack(1412, 1, [(3, 5)]),
        sack(1413, 1, [(3, 6)]),
        data(1413, 2),
        sack(1513, 6),
    ]
    totals = analyze(tmp_path, packets).totals
    assert (totals["fast_retransmitted_chunks"], totals["timeout_retransmitted_chunks"]) == (0, 2)
    assert totals["t3_expiries"] == 1


def test_spurious_by_the_receivers_report(tmp_path: Path) -> None:
    packets = [
        *handshake(),
        data(200, 0, 1),
        data(1300, 0, 1),
        sack(1390, 1),
        sack(1400, 1, again=[0]),
    ]
    totals = analyze(tmp_path, packets).totals
    assert (totals["retransmitted_chunks"], totals["spurious_retransmitted_chunks"]) == (2, 1)
    assert (totals["duplicate_tsns_reported"], totals["network_duplicate_chunks"]) == (1, 0)


def test_each_duplicate_is_one_retransmissions(tmp_path: Path) -> None:
    """Two reports of one TSN that was sent again twice, told at once; a third is the network's."""
    head = [*handshake(), data(200, 0), data(1200, 0), data(3200, 0)]
    for again, spurious, network in (([0], 1, 0), ([0, 0], 2, 0), ([0, 0, 0], 2, 1), ([7], 0, 1)):
        totals = analyze(tmp_path, [*head, sack(3300, 0, again=again)]).totals
        assert (totals["spurious_retransmitted_chunks"], totals["network_duplicate_chunks"]) == (spurious, network)


def test_a_duplicate_before_the_second_retransmission_is_not_its(tmp_path: Path) -> None:
    packets = [*handshake(), data(200, 0), data(1200, 0), sack(1300, -1, again=[0]), data(3200, 0), sack(3300, 0)]
    again = analyze(tmp_path, packets).parts.again
    assert again.spurious.tolist() == [True, False]


def test_spurious_by_the_receivers_capture(tmp_path: Path) -> None:
    """The SACK that would have reported the duplicate is lost: the receiver's capture still knows."""
    packets = [*handshake(), data(200, 0), data(1200, 0), data(1201, 1), data(2500, 1), sack(2600, 1)]
    arrived = [*handshake(), data(250, 0), data(1250, 0), data(2550, 1), sack(2550, 1)]
    there = read(tmp_path, pcap([(T + at, packet) for at, packet in arrived]))
    assert analyze(tmp_path, packets).totals["spurious_retransmitted_chunks"] == 0
    assert analyze(tmp_path, packets, receiver=there).parts.again.spurious.tolist() == [True, False]
    other = read(tmp_path, pcap([(T, packet) for packet in association(tag=5, peer=6)]))
    assert analyze(tmp_path, packets, receiver=other).totals["spurious_retransmitted_chunks"] == 0


def test_rtt_follows_karn(tmp_path: Path) -> None:
    """One sample a SACK and path, from the last chunk sent there; what was ever sent twice gives none."""
    packets = [
        *handshake(),
        data(200, 0),
        data(210, 1),
        data(215, 2, path=2),
        sack(310, 2),
        data(400, 3),
        data(1400, 3),
        sack(1401, 3),
    ]
    rtt = analyze(tmp_path, packets).parts.rtt
    assert rtt.rtt_ns.tolist() == [100 * MS, 95 * MS]
    assert rtt.path.tolist() == [0, 1]


def test_heartbeats_find_their_answers(tmp_path: Path) -> None:
    def beat(at_ms: int, info: bytes, path: int, *, answer: bool = False, back: bool = False) -> Packet:
        value = struct.pack("!HH", 1, 4 + len(info)) + info
        return at_ms * MS, sctp(11 if back else 22, chunk(5 if answer else 4, value), path=path, back=back)

    packets = [
        *handshake(),
        beat(300, b"one-", 1),
        beat(310, b"two-", 2),
        beat(315, b"peer", 2, back=True),
        beat(316, b"peer", 2, answer=True),
        beat(390, b"two-", 2, answer=True, back=True),
        beat(1300, b"lost", 1),
        beat(1420, b"one-", 1, answer=True, back=True),
        beat(1500, b"what", 1, answer=True, back=True),
        data(1600, 0),
    ]
    found = analyze(tmp_path, packets)
    beats = found.parts.heartbeats
    answered = [None if at == NEVER else (at - T) // MS for at in beats.answered_ns.tolist()]
    assert answered == [1420, 390, 316, None]
    assert (beats.path.tolist(), beats.direction.tolist()) == ([0, 1, 1, 0], [0, 0, 1, 0])
    assert (found.totals["heartbeats"], found.totals["heartbeats_unanswered"]) == (3, 1)
    assert found.totals["heartbeat_rtt_mean_s"] == pytest.approx((1.12 + 0.08) / 2)
    assert [event["t_s"] for event in found.events if event["what"] == "unanswered HEARTBEAT"] == [pytest.approx(1.3)]
    assert found.series["heartbeat_rtt_s[10.2.0.1>10.2.0.2]"][1].tolist() == pytest.approx([0.08, 0.001])


def test_outstanding_bytes_move_with_a_chunk(tmp_path: Path) -> None:
    series = analyze(tmp_path, OUTAGE).series

    def steps(name: str) -> list[tuple[int, int]]:
        times, values = series[name]
        return [(round(t * 1000), int(v)) for t, v in zip(times, values, strict=True)]

    assert steps("outstanding_bytes")[:8] == [
        (200, 100), (201, 200), (202, 300), (300, 200), (310, 300), (311, 400), (312, 500), (1500, 400),
    ]  # fmt: skip
    assert steps("outstanding_bytes[10.1.0.1>10.1.0.2]")[6:] == [
        (312, 500), (1400, 400), (1500, 200), (1600, 0), (3000, 100), (3100, 0),
    ]  # fmt: skip
    assert steps("outstanding_bytes[10.2.0.1>10.2.0.2]") == [
        (1400, 100), (1500, 0), (1500, 200), (1600, 0), (1600, 200), (1601, 300), (1701, 0),
    ]  # fmt: skip


def at_receiver(*packets: Packet) -> list[Packet]:
    """The same handshake where its answers are given."""
    init, answer, echo, done = association()
    return [(0, init), (0, answer), (100 * MS, echo), (100 * MS, done), *packets]


def test_head_of_line_delay_by_stream_and_as_one_stream(tmp_path: Path) -> None:
    """Stream 1's first message comes late: it holds up its second, and nothing of stream 2."""
    packets = at_receiver(
        data(200, 1, stream=2, ssn=0),
        data(210, 2, stream=1, ssn=1),
        data(220, 3, stream=2, ssn=1),
        data(300, 0, stream=1, ssn=0),
    )
    found = analyze(tmp_path, packets)
    assert found.point == "receiver"
    one, two = found.tables["streams"]
    assert (one["stream"], one["hol_blocking_mean_s"]) == (1, pytest.approx(0.045))
    assert (one["hol_blocking_one_stream_mean_s"], two["hol_blocking_one_stream_mean_s"]) == (
        pytest.approx(0.045),
        pytest.approx(0.09),
    )
    assert (two["stream"], two["hol_blocking_mean_s"]) == (2, 0)
    assert found.totals["hol_blocking_mean_s"] == pytest.approx(0.0225)
    assert found.totals["hol_blocking_one_stream_max_s"] == pytest.approx(0.1)
    assert found.totals["fast_retransmitted_chunks"] is None


def test_unordered_messages_wait_for_nobody(tmp_path: Path) -> None:
    late = round(300 * MS), sctp(22, data_chunk(ISN, 10, ssn=0))
    packets = at_receiver((200 * MS, sctp(22, data_chunk(ISN + 1, 10, flags=7))), late)
    told = analyze(tmp_path, packets).parts.messages
    assert (told.delivery_ns - told.arrival_ns).tolist() == [0, 0]
    assert told.waits_as_one_ns.tolist() == [0, 100 * MS]


def test_fragments_make_a_message_and_a_missing_one_holds_up_its_stream(tmp_path: Path) -> None:
    def fragment(at_ms: int, tsn: int, flags: int, stream: int = 0, ssn: int = 0) -> Packet:
        return at_ms * MS, sctp(22, data_chunk(ISN + tsn, 50, stream=stream, ssn=ssn, flags=flags))

    packets = at_receiver(
        fragment(200, 0, 2), fragment(201, 1, 0), fragment(202, 2, 1),  # whole
        fragment(203, 3, 2, ssn=1), fragment(204, 5, 1, ssn=1),  # 4 never arrives
        fragment(205, 6, 3, ssn=2), fragment(206, 7, 3, stream=9),
    )  # fmt: skip
    found = analyze(tmp_path, packets)
    told = found.parts.messages
    assert found.totals["complete_messages"] == 3
    assert told.payload_bytes[told.delivered].tolist() == [150, 50]
    assert told.stream[told.delivered].tolist() == [0, 9]
    assert told.delivered_as_one.sum() == 1
    assert found.tables["fragmentation"] == [{"fragments": 1, "messages": 4}, {"fragments": 3, "messages": 1}]


def test_forward_tsn_lets_the_stream_go_on(tmp_path: Path) -> None:
    """RFC 3758 3.6: what was given up no longer holds up what comes after it."""
    forward = 400 * MS, sctp(22, chunk(192, struct.pack("!I", (ISN + 1) % 2**32)))
    packets = at_receiver(data(200, 0), data(210, 2), forward, data(500, 3))
    found = analyze(tmp_path, packets)
    told = found.parts.messages
    assert told.tsn.tolist() == [0, 2, 3]
    assert told.waits_ns.tolist() == told.waits_as_one_ns.tolist() == [0, 190 * MS, 0]
    without = analyze(tmp_path, [packet for packet in packets if packet is not forward]).parts.messages
    assert without.delivered.tolist() == [True, False, False]


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
    found = analyze(tmp_path, packets)
    told = found.parts.messages
    assert told.complete.all()
    assert told.delivered.all()
    assert told.tsn.tolist() == [0, 1, 4, 5]
    assert told.fragments.tolist() == [2, 2, 1, 1]
    assert (told.arrival_ns - T).tolist() == [205 * MS, 202 * MS, 203 * MS, 204 * MS]
    assert told.waits_ns.tolist() == [0, 0, 0, 1 * MS]
    names = {row["ppid"]: (row["name"], row["messages"]) for row in found.tables["payloads"]}
    assert names == {46: ("Diameter", 3), 60: ("NGAP", 1)}


def test_a_capture_begun_in_the_middle_takes_what_it_sees_first(tmp_path: Path) -> None:
    packets = [data(0, 7, stream=3), data(1, 9, stream=3), data(2, 8, stream=3), sack(50, 9)]
    found = analyze(tmp_path, packets)
    assert found.point == "unknown"
    assert found.parts.messages.delivered.all()
    assert found.totals["hol_blocking_max_s"] == pytest.approx(0.001)


def test_bundling(tmp_path: Path) -> None:
    both = 300 * MS, sctp(22, sack_chunk(8999), data_chunk(ISN + 5))
    found = analyze(tmp_path, [*handshake(), data(200, 0, 1, 2), data(201, 3, 4), both])
    rows = [row for row in found.tables["bundling"] if row["direction"] == "data" and row["what"] == "data chunks"]
    assert [(row["per_packet"], row["packets"]) for row in rows] == [(1, 1), (2, 1), (3, 1)]
    names = {row["name"]: (row["data"], row["back"]) for row in found.tables["chunks"]}
    assert names == {
        "DATA": (6, 0), "INIT": (1, 0), "INIT ACK": (0, 1), "SACK": (1, 0), "COOKIE ECHO": (1, 0), "COOKIE ACK": (0, 1),
    }  # fmt: skip


def test_sack_delay_where_it_is_given(tmp_path: Path) -> None:
    """Every second packet at once, the last one when the timer fires (RFC 9260 6.2)."""
    packets = at_receiver(
        data(200, 0), sack(200, 0), data(201, 1), data(202, 2), sack(202, 2), data(203, 3), sack(403, 3)
    )
    timing = analyze(tmp_path, packets).parts.sacks
    assert timing.data_packets.tolist() == [1, 2, 1]
    assert timing.delay_ns.tolist() == [0, 1 * MS, 200 * MS]


def cause(code: int, value: bytes = b"", length: int | None = None) -> bytes:
    said = 4 + len(value) if length is None else length
    return struct.pack("!HH", code, said) + value + b"\0" * (-len(value) % 4)


def test_causes_of_abort_and_error(tmp_path: Path) -> None:
    packets = [
        *handshake(),
        (300 * MS, sctp(11, chunk(9, cause(1, b"\0\7\0\0") + cause(8, b"abcde")), back=True)),
        (310 * MS, sctp(22, chunk(6, cause(12, b"reason")))),
    ]
    found = analyze(tmp_path, packets)
    assert found.ended == "abort"
    assert [(row["chunk"], row["cause"], row["length"], row["direction"]) for row in found.tables["causes"]] == [
        ("ERROR", "Invalid Stream Identifier", 8, "back"),
        ("ERROR", "Unrecognized Parameters", 9, "back"),
        ("ABORT", "User-Initiated Abort", 10, "data"),
    ]
    capture = found.parts.capture
    assert capture.chunks["type"][capture.causes["chunk"]].tolist() == [9, 9, 6]
    assert [event.get("causes") for event in found.events[-2:]] == [
        ["Invalid Stream Identifier", "Unrecognized Parameters"],
        ["User-Initiated Abort"],
    ]


@pytest.mark.parametrize(
    "value", [cause(3, b"", 3), cause(3, b"x", 400), b"\0\3", b""], ids=["short", "long", "cut", "none"]
)
def test_causes_whose_length_lies(value: bytes, tmp_path: Path) -> None:
    capture = read(tmp_path, pcap(timed([*association(), sctp(22, chunk(6, value))])))
    assert len(capture.causes) == 0
    assert (capture.packets["marks"][-1] & 2 > 0) == (len(value) >= 4)


def test_a_restart_is_an_event(tmp_path: Path) -> None:
    packets = [*association(), sctp(22, data_chunk(ISN)), *association(tag=33, peer=44, tsn=ISN)]
    capture = read(tmp_path, pcap(timed(packets)))
    found = analyze_sctp(capture, 1)
    assert found.restart_of == 0
    assert found.events[0]["what"] == "restart" or found.events[1]["what"] == "restart"
    assert analyze_sctp(capture, 0).restart_of is None


def test_a_tag_used_again_after_the_end_is_another_association(tmp_path: Path) -> None:
    end = sctp(22, chunk(6))
    packets = [*association(), sctp(22, data_chunk(ISN)), end, *association(), sctp(22, data_chunk(ISN))]
    capture = read(tmp_path, pcap(timed(packets)))
    assert capture.packets["flow"].tolist() == [0] * 6 + [1] * 5
    assert capture.flows["restart_of"].tolist() == [NONE, NONE]
    assert not capture.chunks["is_retransmission"].any()


def test_init_repeated_on_another_path_is_the_same_association(tmp_path: Path) -> None:
    packets = [association()[0], *association(path=2), sctp(22, data_chunk(ISN), path=2)]
    assert len(read(tmp_path, pcap(timed(packets))).flows) == 1


def test_inits_that_cross_are_one_association_and_both_ask(tmp_path: Path) -> None:
    """RFC 9260 5.2.1, with the whole exchange of cookies on top of it."""
    packets = [
        sctp(0, init_chunk(11, 100)),
        sctp(0, init_chunk(22, 200), back=True),
        sctp(22, init_chunk(11, 100, ack=True)),
        sctp(11, init_chunk(22, 200, ack=True), back=True),
        sctp(22, chunk(10, b"cookie")),
        sctp(11, chunk(10, b"cookie"), back=True),
        sctp(11, chunk(11), back=True),
        sctp(22, chunk(11)),
        sctp(22, data_chunk(100)),
    ]
    capture = read(tmp_path, pcap(timed(packets)))
    assert len(capture.flows) == 1
    counts = {row["name"]: (row["data"], row["back"]) for row in analyze_sctp(capture, 0).tables["chunks"]}
    assert counts["INIT"] == counts["INIT ACK"] == counts["COOKIE ECHO"] == (1, 1)


def test_data_the_other_way(tmp_path: Path) -> None:
    """The direction with more user data is looked at, unless another is asked for."""
    packets = [
        *association(),
        *(sctp(11, data_chunk(9000 + n, 500), back=True) for n in range(3)),
        sctp(22, data_chunk(ISN)),
    ]
    capture = read(tmp_path, pcap(timed(packets)))
    found = analyze_sctp(capture, 0)
    assert (found.direction, found.from_, found.totals["user_bytes"]) == (1, "10.1.0.2:80", 1500)
    assert found.totals["data_chunks_other_direction"] == 1
    assert analyze_sctp(capture, 0, direction=0).totals["user_bytes"] == 100


def test_only_an_association_is_one(tmp_path: Path) -> None:
    capture = read(tmp_path, pcap([(T, segment(1, flags="S"))]))
    for flow in (0, 1, -1):
        with pytest.raises(ValueError, match="no SCTP association"):
            analyze_sctp(capture, flow)


def test_an_association_without_data(tmp_path: Path) -> None:
    found = analyze_sctp(read(tmp_path, pcap(timed(association()))), 0)
    assert found.totals["data_chunks"] == found.totals["messages"] == found.totals["outages"] == 0
    assert found.totals["rtt_mean_s"] is found.totals["outstanding_max_bytes"] is None
    assert found.series == {}
    assert [event["what"] for event in found.events] == ["INIT", "INIT ACK", "COOKIE ECHO", "COOKIE ACK"]


def test_truncated_chunks_are_counted_and_no_more(tmp_path: Path) -> None:
    packet = sctp(22, data_chunk(ISN, 100), data_chunk(ISN + 1, 100))
    frames = [(T + n, frame) for n, frame in enumerate(association())]
    capture = read(tmp_path, pcap([*frames, (T + 9, packet[:-110], len(packet))]))
    totals = analyze_sctp(capture, 0).totals
    assert (totals["data_chunks"], totals["unknown_tsn_chunks"]) == (1, 1)


def test_messages_of_nothing(tmp_path: Path) -> None:
    capture: Capture = read(tmp_path, pcap(timed(association())))
    assert len(messages(capture.chunks).tsn) == 0
    assert messages(capture.chunks).waits_ns.dtype == np.int64


def test_what_was_acknowledged_and_never_seen(tmp_path: Path) -> None:
    """One interface of two: the other one's data is known by its acknowledgements alone."""
    whole = [*handshake(), data(200, 0, 1), data(201, 2, 3, path=2), data(202, 4), sack(300, 4)]
    assert analyze(tmp_path, whole).totals["acknowledged_unseen_chunks"] == 0
    assert analyze(tmp_path, whole[:5] + whole[6:]).totals["acknowledged_unseen_chunks"] == 2
    assert analyze(tmp_path, whole[4:5] + whole[6:]).totals["acknowledged_unseen_chunks"] == 2


def test_interfaces_of_one_file_are_those_of_several(tmp_path: Path) -> None:
    """mergecap puts packets of one instant in its own order: a SACK, and what it caused elsewhere."""
    files = recorded("sctp", "a", ["p1", "p2"])
    apart = analyze_sctp(read_captures(files), 0).totals
    for order in (files, files[::-1]):
        merged = tmp_path / "merged.pcapng"
        subprocess.run(["mergecap", "-F", "pcapng", "-w", str(merged), *map(str, order)], check=True)
        assert analyze_sctp(read_captures([merged]), 0).totals == apart
    assert (apart["fast_retransmitted_chunks"], apart["t3_expiries"]) == (10, 1)
