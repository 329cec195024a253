"""SCTP associations: which packets belong to one, how it begins, restarts and ends."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import pytest
from netwarp.captures import read_captures
from netwarp.captures.native import NONE
from netwarp.captures.sctp import analyze_sctp
from netwarp.captures.sctp.settings import infer_settings
from support.captures import (
    ISN,
    T,
    association,
    chunk,
    data_chunk,
    has,
    init_chunk,
    pcap,
    read,
    recorded,
    sack_chunk,
    sctp,
    segment,
    timed,
)
from support.sctp_story import MS, analyze, handshake


def cause(code: int, value: bytes = b"", length: int | None = None) -> bytes:
    size = 4 + len(value) if length is None else length
    return struct.pack("!HH", code, size) + value + b"\0" * (-len(value) % 4)


def test_causes_of_abort_and_error(tmp_path: Path) -> None:
    packets = [
        *handshake(),
        (300 * MS, sctp(11, chunk(9, cause(1, b"\0\7\0\0") + cause(8, b"abcde")), back=True)),
        (310 * MS, sctp(22, chunk(6, cause(12, b"reason")))),
    ]
    analysis = analyze(tmp_path, packets)
    assert analysis.ended == "abort"
    assert [(row["chunk"], row["cause"], row["length"], row["direction"]) for row in analysis.tables["causes"]] == [
        ("ERROR", "Invalid Stream Identifier", 8, "back"),
        ("ERROR", "Unrecognized Parameters", 9, "back"),
        ("ABORT", "User-Initiated Abort", 10, "data"),
    ]
    capture = analysis.capture
    assert capture.chunks["type"][capture.causes["chunk"]].tolist() == [9, 9, 6]
    assert [event.get("causes") for event in analysis.events[-2:]] == [
        ["Invalid Stream Identifier", "Unrecognized Parameters"],
        ["User-Initiated Abort"],
    ]


@pytest.mark.parametrize(
    "value", [cause(3, b"", 3), cause(3, b"x", 400), b"\0\3", b""], ids=["short", "long", "cut", "none"]
)
def test_causes_with_a_wrong_length(value: bytes, tmp_path: Path) -> None:
    capture = read(tmp_path, pcap(timed([*association(), sctp(22, chunk(6, value))])))
    assert len(capture.causes) == 0
    assert (capture.packets["marks"][-1] & 2 > 0) == (len(value) >= 4)


def test_a_restart_is_a_new_association_that_names_the_old_one(tmp_path: Path) -> None:
    packets = [
        *association(),
        sctp(22, data_chunk(ISN)),
        *association(tag=33, peer=44, tsn=ISN),
        sctp(44, data_chunk(ISN)),
    ]
    capture = read(tmp_path, pcap(timed(packets)))
    assert capture.flows["restart_of"].tolist() == [NONE, 0]
    assert capture.chunks["flow"].tolist() == [0] * 5 + [1] * 5
    assert not capture.chunks["is_retransmission"].any()
    second = analyze_sctp(capture, 1)
    assert second.restart_of == 0
    assert "restart" in [event["what"] for event in second.events[:2]]
    assert analyze_sctp(capture, 0).restart_of is None


@pytest.mark.parametrize("tags", [{}, {"tag": 33, "peer": 44}], ids=["same tags", "new tags"])
def test_an_association_after_an_abort_is_another_one_and_no_restart(tags: dict[str, int], tmp_path: Path) -> None:
    again = [*association(**tags), sctp(tags.get("peer", 22), data_chunk(ISN))]
    capture = read(tmp_path, pcap(timed([*association(), sctp(22, data_chunk(ISN)), sctp(22, chunk(6)), *again])))
    assert capture.packets["flow"].tolist() == [0] * 6 + [1] * 5
    has(capture.flows, restart_of=[NONE, NONE], ended=[[True, False], [False, False]])
    assert not capture.chunks["is_retransmission"].any()


@pytest.mark.parametrize("path", [1, 2])
def test_an_init_sent_again_makes_no_second_association(path: int, tmp_path: Path) -> None:
    packets = [association()[0], *association(path=path), sctp(22, data_chunk(ISN), path=path)]
    assert len(read(tmp_path, pcap(timed(packets))).flows) == 1


@pytest.mark.parametrize("taken", range(5))
def test_of_several_init_acks_the_cookie_tells_which_counts(taken: int, tmp_path: Path) -> None:
    """Each copy of an INIT is answered by other numbers (RFC 9260 5.1); which answer its sender took, the responder's
    capture shows only by the tag of the COOKIE ECHO.
    """
    tag, tsn = 22 + taken, 9000 + 100_000 * taken
    packets = [
        *[sctp(0, init_chunk(11, ISN))] * 5,
        *(sctp(11, init_chunk(22 + n, 9000 + 100_000 * n, ack=True), back=True) for n in range(5)),
        sctp(tag, chunk(10, b"cookie")),
        sctp(11, chunk(11), back=True),
        *(sctp(11, data_chunk(tsn + n, ssn=n), back=True) for n in range(3)),
        sctp(tag, sack_chunk(tsn + 2)),
    ]
    capture = read(tmp_path, pcap(timed(packets)))
    assert len(capture.flows) == 1
    assert capture.flows["base"][0].tolist() == [ISN, tsn]
    assert capture.flows["tag"][0].tolist() == [11, tag]
    totals = analyze_sctp(capture, 0).totals
    assert (totals["messages"], totals["acknowledged_unseen_chunks"]) == (3, 0)


def test_an_init_after_a_stale_cookie_is_of_the_same_association(tmp_path: Path) -> None:
    """The initiator asks again with its own tag and TSN; the answer has others (RFC 9260 5.2.6). Found by explored
    schedules (net/sctp of Linux 6.12 with five COOKIE ECHOs lost).
    """
    stale = chunk(9, cause(3, struct.pack("!I", 37_488_750)))
    packets = [
        *association()[:3],
        sctp(11, stale, back=True),
        sctp(0, init_chunk(11, ISN)),
        sctp(11, init_chunk(33, 500_000, ack=True), back=True),
        sctp(33, chunk(10, b"cookie")),
        sctp(11, chunk(11), back=True),
        sctp(33, data_chunk(ISN)),
        sctp(11, sack_chunk(ISN), data_chunk(500_000), back=True),
        sctp(33, sack_chunk(500_000)),
    ]
    capture = read(tmp_path, pcap(timed(packets)))
    assert len(capture.flows) == 1
    assert (capture.flows["tag"][0].tolist(), capture.flows["base"][0].tolist()) == ([11, 33], [ISN, 500_000])
    for direction in (0, 1):
        totals = analyze_sctp(capture, 0, direction=direction).totals
        has(totals, messages=1, acknowledged_unseen_chunks=0, unknown_tsn_chunks=0)
    assert not {"rto_initial", "init_attempts"} & {each.name for each in infer_settings(capture, 0)}, "no timer sent it"


def test_inits_that_cross_are_one_association(tmp_path: Path) -> None:
    """Both sides send INIT at once, and each answers with the tag of its own INIT (RFC 9260 5.2.1)."""
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
        sctp(11, data_chunk(200), back=True),
    ]
    capture = read(tmp_path, pcap(timed(packets)))
    assert len(capture.flows) == 1
    sent = capture.chunks[capture.chunks["type"] == 0]
    assert (sent["tsn"].tolist(), sent["direction"].tolist()) == ([0, 0], [0, 1])
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
    analysis = analyze_sctp(capture, 0)
    assert (analysis.direction, analysis.from_, analysis.totals["user_bytes"]) == (1, "10.1.0.2:80", 1500)
    assert analysis.totals["data_chunks_other_direction"] == 1
    assert analyze_sctp(capture, 0, direction=0).totals["user_bytes"] == 100


def test_a_flow_that_is_no_association_is_an_error(tmp_path: Path) -> None:
    capture = read(tmp_path, pcap([(T, segment(1, flags="S"))]))
    for flow in (0, 1, -1):
        with pytest.raises(ValueError, match="no SCTP association"):
            analyze_sctp(capture, flow)


def test_an_association_without_data(tmp_path: Path) -> None:
    analysis = analyze_sctp(read(tmp_path, pcap(timed(association()))), 0)
    has(analysis.totals, data_chunks=0, messages=0, outages=0, rtt_mean_s=None, outstanding_max_bytes=None)
    assert analysis.series == {}
    assert [event["what"] for event in analysis.events] == ["INIT", "INIT ACK", "COOKIE ECHO", "COOKIE ACK"]


def test_truncated_chunks_are_counted_and_no_more(tmp_path: Path) -> None:
    packet = sctp(22, data_chunk(ISN, 100), data_chunk(ISN + 1, 100))
    frames = [(T + n, frame) for n, frame in enumerate(association())]
    capture = read(tmp_path, pcap([*frames, (T + 9, packet[:-110], len(packet))]))
    totals = analyze_sctp(capture, 0).totals
    assert (totals["data_chunks"], totals["unknown_tsn_chunks"]) == (1, 1)


def test_interfaces_of_one_file_are_those_of_several(tmp_path: Path) -> None:
    """mergecap puts packets of one instant in its own order: a SACK, and what it caused elsewhere."""
    files = recorded("sctp", "a", ["p1", "p2"])
    apart = analyze_sctp(read_captures(files), 0).totals
    for order in (files, files[::-1]):
        merged = tmp_path / "merged.pcapng"
        subprocess.run(["mergecap", "-F", "pcapng", "-w", str(merged), *map(str, order)], check=True)
        assert analyze_sctp(read_captures([merged]), 0).totals == apart
    assert (apart["fast_retransmitted_chunks"], apart["t3_expiries"]) == (10, 1)
