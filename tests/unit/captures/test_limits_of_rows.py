"""A capture may hold more than its packets: chunks, blocks of SACKs, addresses, streams. No number of them takes memory
or time without a limit.
"""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from netwarp import CaptureError, analyze_captures, explain_captures
from netwarp.captures import explanation
from netwarp.captures.capture import read_captures
from netwarp.captures.sctp.association import Association
from netwarp.captures.stream import read_stream
from netwarp.core.limits import raised
from support.captures import association, data_chunk, init_chunk, pcap, sack_chunk, sctp, timed

PACKETS = association()
BLOCKS = 4000


def _written(path: Path, packets: list[bytes]) -> Path:
    path.write_bytes(pcap(timed(packets)))
    return path


def _with_blocks(path: Path, count: int) -> Path:
    """The same with SACKs of thousands of gap blocks each."""
    blocks = [(2 + 2 * number, 2 + 2 * number) for number in range(BLOCKS)]
    return _written(path, [*PACKETS, *[sctp(11, sack_chunk(1, blocks), back=True)] * count])


def _to_many_addresses(path: Path, count: int) -> Path:
    """One association, each packet of which goes to another address."""
    packets = []
    for number in range(count):
        packet = bytearray(sctp(22, data_chunk(1000 + number)))
        packet[-16 - 100 - 12 - 4 : -16 - 100 - 12] = struct.pack("!I", 0x0B000000 + number)
        packets.append(bytes(packet))
    return _written(path, [*PACKETS, *packets])


def test_explain_refuses_more_packets_than_the_limit(tmp_path: Path) -> None:
    path = _written(tmp_path / "a.pcap", PACKETS)
    with (
        raised([f"explained-packets={len(PACKETS) - 1}"]),
        pytest.raises(
            CaptureError, match=rf"those of {len(PACKETS) - 1} packets; .*--limit explained-packets=.*--filter"
        ),
    ):
        explain_captures([path])
    with raised([f"explained-packets={len(PACKETS)}"]):
        assert len(explain_captures([path]).connections) == 1


def test_rows_count_as_packets(tmp_path: Path) -> None:
    """A few packets with many rows are as many as those rows take: explain and a cell refuse them, a summary goes on
    without them.
    """
    path = _with_blocks(tmp_path / "a.pcap", 20)
    few = len(PACKETS) + 30  # more than its packets, and far fewer than its rows take
    with raised([f"explained-packets={few}"]), pytest.raises(CaptureError, match="more rows than those of"):
        explain_captures([path])
    with raised([f"cell-packets={few}"]), pytest.raises(CaptureError, match="more rows than those of"):
        read_captures([path])
    whole = read_stream([path], keep=None)
    parts = read_stream([path], keep=few, part_packets=7)
    assert (whole.whole, parts.whole) == (True, False)
    assert len(whole.capture.blocks) >= 20 * BLOCKS and not len(parts.capture.blocks)
    assert whole.capture.flows.tobytes() == parts.capture.flows.tobytes()
    assert whole.capture.sources.tobytes() == parts.capture.sources.tobytes()


def test_a_connection_of_many_paths_is_refused(tmp_path: Path) -> None:
    path = _to_many_addresses(tmp_path / "a.pcap", 60)
    for read in (lambda: analyze_captures([path]), lambda: explain_captures([path]), lambda: read_captures([path])):
        with raised(["paths-of-one=50"]), pytest.raises(CaptureError, match="more than 50 paths of one connection; "):
            read()
        with raised(["paths=50"]), pytest.raises(CaptureError, match="more than 50 pairs of addresses; "):
            read()
    with raised(["paths-of-one=70"]):
        assert len(analyze_captures([path]).files[0].connections) == 1


def test_explain_looks_at_an_association_as_often_for_many_streams(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of as many messages, on one stream and on hundreds: each look takes as long as there are chunks."""
    looked: list[object] = []
    monkeypatch.setattr(
        explanation, "Association", lambda *given, **more: looked.append(given) or Association(*given, **more)
    )
    counts = []
    for streams in (1, 600):
        opening = [sctp(0, init_chunk(11, 1000)), sctp(11, init_chunk(22, 5000, ack=True), back=True)]
        data = [sctp(22, data_chunk(1000 + number, 4, stream=number % streams)) for number in range(600)]
        path = _written(tmp_path / f"{streams}.pcap", [*opening, *data])
        (found,) = explain_captures([path]).connections
        assert len(found.streams) == streams
        counts.append(len(looked))
        looked.clear()
    assert counts[0] == counts[1] > 0
