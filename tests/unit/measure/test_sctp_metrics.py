"""The metrics that SCTP flows of a cell have beside the others, from the recorded captures."""

from __future__ import annotations

from pathlib import Path

import pytest
from netwarp.captures import read_captures
from netwarp.captures.sctp import analyze_sctp
from netwarp.core.metrics.catalogue import METRICS
from netwarp.measure.delivery import delivered
from support.captures import ISN, association, chunk, data_chunk, recorded, sctp, timed
from support.observed import at_end, flow_of
from support.recorded_cell import STOP, T0, derive, make_cell, make_directory

LINKS = {"sctp": ["p1", "p2"], "bundle": ["p1"]}


@pytest.mark.parametrize("name", ["sctp", "bundle"])
def test_they_are_the_associations_within_the_window(name: str, tmp_path: Path) -> None:
    cell = make_cell(name)
    metrics = derive(cell, make_directory(cell, name, tmp_path / "cell")).metrics
    capture = read_captures(recorded(name, "a", LINKS[name]))
    end_ns = T0 + int(STOP * 1e9)
    chunks = capture.chunks[capture.chunks["time_ns"] <= end_ns]
    again = (chunks["type"] == 0) & chunks["is_retransmission"]
    assert metrics["fast_retransmissions"] + metrics["timeout_retransmissions"] == again.sum() > 0
    found = analyze_sctp(capture, 0).again
    assert metrics["t3_expiries"] == len(found.expiries) == int(name == "sctp")
    sacks = chunks[(chunks["type"] == 3) & (chunks["direction"] == 1)]
    second = capture.packets["source"][sacks["packet"]] == 1
    assert metrics["sacks_other_path_ratio"] == pytest.approx(second.mean())
    # one stream in the recording: as if it were one changes nothing
    assert metrics["hol_blocking_one_stream_s"] == metrics["hol_blocking_s"] > 0


def test_other_protocols_have_none(tmp_path: Path) -> None:
    cell = make_cell("tcp")
    metrics = derive(cell, make_directory(cell, "tcp", tmp_path / "cell")).metrics
    assert not {name for name in metrics if name in METRICS and METRICS[name].flows == "SCTP"}


@pytest.mark.parametrize("name", ["sctp", "bundle", "tcp"])
def test_the_cost_of_a_transfer_counts_both_directions(name: str, tmp_path: Path) -> None:
    cell = make_cell(name)
    metrics = derive(cell, make_directory(cell, name, tmp_path / "cell")).metrics
    capture = read_captures(recorded(name, "b", LINKS.get(name, ["p1"])))
    packets = capture.packets[(capture.packets["flow"] == 0) & (capture.packets["time_ns"] <= T0 + int(STOP * 1e9))]
    assert metrics["packets_both_ways"] == len(packets) > metrics["packets"]
    assert metrics["wire_bytes_both_ways"] == packets["ip_bytes"].sum() > metrics["wire_bytes"]
    assert metrics["payload_share_ratio"] == pytest.approx(metrics["payload_bytes"] / packets["ip_bytes"].sum())
    if name != "tcp":
        data = capture.chunks[(capture.chunks["type"] == 0) & (capture.chunks["time_ns"] <= T0 + int(STOP * 1e9))]
        assert metrics["data_chunks"] == len(data)
        assert metrics["chunks_per_packet_ratio"] == pytest.approx(len(data) / metrics["data_packets"])
    assert metrics["theory_data_packets_low"] is None  # a timed flow: how much it sends is not known beforehand


@pytest.mark.parametrize(("aborts", "delivered_bytes"), [([], 600), ([sctp(22, chunk(6))], 400)])
def test_data_after_the_abort_is_not_delivered(aborts: list[bytes], delivered_bytes: int, tmp_path: Path) -> None:
    """An ABORT on a free path overtakes what is queued on another: the receiver drops that, RFC 9260 9.1."""
    data = [sctp(22, data_chunk(ISN + number, ssn=number)) for number in range(6)]
    receiver = at_end(flow_of("sctp"), tmp_path, timed([*association(), *data[:4], *aborts, *data[4:]]), "b")
    assert delivered(receiver, "sctp").payload_bytes.sum() == delivered_bytes
