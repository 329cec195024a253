"""Choosing part of a capture: by filter, by connection, by stopping a pipe; and the time-sequence graph."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from netwarp.captures import read_captures, summarise_points
from netwarp.captures.summary import FileSummary
from netwarp.captures.time_sequence import time_sequence
from netwarp.core.errors import CaptureError
from support.captures import T, has, pcap, recorded, segment, tcp_transfer
from support.tshark import tshark

FILTERS = [
    ("tcp dst port 5001", "tcp.dstport == 5001"),
    ("src host 10.1.2.1 and tcp[tcpflags] & tcp-syn != 0", "ip.src == 10.1.2.1 && tcp.flags.syn == 1"),
    ("greater 1000", "frame.len >= 1000"),
    ("udp", "udp"),
]


@pytest.mark.parametrize(("chosen", "shown"), FILTERS, ids=[pair[0] for pair in FILTERS])
def test_a_filter_leaves_what_tshark_shows(chosen: str, shown: str, tmp_path: Path) -> None:
    files = recorded("tcp", "a", ["p1"])
    capture = read_captures(files, packet_filter=chosen)
    frames = tshark(files, tmp_path, ["frame.number", "frame.len"], shown)
    assert len(capture.packets) == int(capture.sources["packets"][0]) == len(frames)
    assert capture.packets["frame_bytes"].sum() == sum(int(row[1][0]) for row in frames)


def test_a_filter_that_is_not_valid_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap(tcp_transfer()))
    with pytest.raises(CaptureError, match=r'the filter "tcp and": .*syntax error'):
        read_captures([path], packet_filter="tcp and")


def several(tmp_path: Path) -> Path:
    """Twelve connections of different sizes, packets interleaved."""
    packets = []
    for step in range(12):
        for number in range(step, 12):
            frame = bytearray(segment(1 + 100 * step, 100, back=False))
            frame[34:36] = (2000 + number * 7 % 12).to_bytes(2, "big")
            packets.append((T + len(packets) * 1000, bytes(frame)))
    path = tmp_path / "several.pcap"
    path.write_bytes(pcap(packets))
    return path


def test_a_filter_that_nothing_matches(tmp_path: Path) -> None:
    (found,) = summarise_points([[several(tmp_path)]], packet_filter="host 192.0.2.1")
    assert "no packet in it matches the filter" in found.notes


def test_flow_n_is_exactly_connection_n_of_the_summary(tmp_path: Path) -> None:
    path = several(tmp_path)
    (every,) = summarise_points([[path]], full=True)
    assert [connection.number for connection in every.connections] == list(range(1, 13))
    for connection in every.connections:
        (chosen,) = summarise_points([[path]], flow=connection.number)
        (alone,) = chosen.connections
        assert alone.as_json() == connection.as_json()
        assert len(chosen.as_json()["flows"]) == 1
        assert f"only flow {connection.number} of 12 is looked at (--flow)" in chosen.notes
    with pytest.raises(CaptureError, match="no flow 13 in it: it has 12 connections"):
        summarise_points([[path]], flow=13)


def test_connections_by_place_by_slice_and_in_turn_are_the_same(tmp_path: Path) -> None:
    (found,) = summarise_points([[several(tmp_path)]])
    turn = [connection.as_json() for connection in found.connections]
    assert [found.connections[place].as_json() for place in range(12)] == turn
    assert [connection.as_json() for connection in found.connections[3:7]] == turn[3:7]
    assert found.connections[-1].number == 12
    assert sorted((connection.ip_bytes for connection in found.connections), reverse=True) == [
        connection.ip_bytes for connection in found.connections
    ]


def test_a_pipe_that_is_stopped_is_summarised_as_far_as_it_came(tmp_path: Path) -> None:
    """The writer's last bytes, sent when it was stopped too, are taken along; one that stays open is not waited for."""
    for number in range(3):  # the last bytes are waited for a second: a busy machine may send them later
        found = stopped_pipe(tmp_path / f"live{number}", pcap(tcp_transfer()))
        if found.facts["packets"] == len(tcp_transfer()) - 1:
            break
    assert found.facts["packets"] == len(tcp_transfer()) - 1
    assert any("reading was stopped" in note for note in found.notes)


def stopped_pipe(fifo: Path, data: bytes) -> FileSummary:
    os.mkfifo(fifo)
    read_end, write_end = os.pipe()
    closed = threading.Event()

    def write() -> None:
        with fifo.open("wb", buffering=0) as out:
            out.write(data[:-500])
            time.sleep(0.2)
            os.write(write_end, b"x")
            out.write(data[-500:-10])
            closed.wait(300)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        (found,) = summarise_points([[fifo]], stop_fd=read_end)
    finally:
        closed.set()
        writer.join()
        os.close(read_end)
        os.close(write_end)
    return found


def test_the_time_sequence_has_every_segment_acknowledgement_and_block() -> None:
    capture = read_captures(recorded("tcp", "a", ["p1"]))
    rows = list(time_sequence(capture, 0, int(capture.sources["first_ns"][0])))
    counts = Counter((direction, what) for _, direction, what, _, _ in rows)
    segments = capture.segments
    carries = segments[segments["payload_bytes"] > 0]
    assert counts[0, "data"] + counts[0, "retransmission"] == (carries["direction"] == 0).sum()
    assert counts[0, "retransmission"] == (carries["is_retransmission"] & (carries["direction"] == 0)).sum() > 0
    assert counts[0, "sack"] == segments["sack_blocks"][segments["direction"] == 1].sum() > 0
    assert [row[0] for row in rows] == sorted(row[0] for row in rows)
    first = next(row for row in rows if row[2] == "data")
    assert first[1:] == (0, "data", 1, 1 + int(carries["payload_bytes"][0]))
    end = max(row[4] for row in rows if row[2] == "data" and row[1] == 0)
    acknowledged = max(row[3] for row in rows if row[2] == "ack" and row[1] == 0)
    assert acknowledged == end + 1  # the FIN has a number


def test_the_time_sequence_of_an_association() -> None:
    capture = read_captures(recorded("sctp", "a", ["p1", "p2"]))
    counts = Counter(what for _, _, what, _, _ in time_sequence(capture, 0, 0))
    chunks = capture.chunks
    data = chunks[(chunks["type"] == 0) & (chunks["flow"] == 0)]
    assert counts["data"] + counts["retransmission"] == len(data)
    has(counts, ack=(capture.sacks["flow"] == 0).sum(), sack=(capture.blocks["kind"] == 0).sum())
