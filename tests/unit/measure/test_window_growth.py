"""Windows from the wire and from the kernel's samples, against what was put in; a recovery against plain loops."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from netwarp.captures import read_captures
from netwarp.core.outputs import MOMENTS, MOST_PACKETS
from netwarp.measure.cell import analyze_cell
from netwarp.measure.groups.window_growth import window_growth_metrics
from netwarp.measure.observation import Window
from netwarp.measure.sent_data import AckedData, outstanding_of, rounds
from netwarp.store import compressed
from netwarp.store.app_records import PathState, Sample
from support.captures import DATA
from support.captures import T as T0_STORY
from support.observed import at_end, flow_of, observed
from support.recorded_cell import FAULT, MONOTONIC, REPAIR, STOP, T0, S, make_cell, make_directory, write
from support.sctp_story import at_receiver, data, handshake, sack
from support.tcp_story import Story

RTT = 100_000_000


def doubling(initial: int, factor: float, limit: int) -> AckedData:
    """A sender whose rounds of packets (1000 bytes, 1 ms apart) grow by a factor; each packet is acknowledged."""
    sent: list[int] = []
    size, at = float(initial), 0
    while size <= limit:
        sent += [at + number * 1_000_000 for number in range(round(size))]
        size, at = size * factor, at + RTT
    times = np.array(sent, dtype=np.int64)
    total = np.arange(1, len(sent) + 1, dtype=np.int64) * 1000
    return AckedData(times, total, times + RTT - 1000, total, 1000, 40_500)


@pytest.mark.parametrize(("initial", "factor", "sizes"), [(10, 2, [10, 20, 40]), (4, 1.5, [4, 6, 9, 14, 20, 30])])
def test_rounds_are_what_was_sent_between_acknowledgements(initial: int, factor: float, sizes: list[int]) -> None:
    flight = doubling(initial, factor, 45)
    assert list(rounds(flight, None)) == sizes
    assert list(rounds(flight, 2 * RTT)) == sizes[:2], "only those that were over by then"


def test_the_window_is_full_to_within_one_packet() -> None:
    flight = doubling(10, 2, 45)
    assert flight.nearly_full_bytes == 39_000  # 40 packets of 1000 B fit into 40,500 B
    full = flight.full_ns()
    assert full is not None
    before = int(np.flatnonzero(flight.sent_ns == full)[0])
    outstanding = [
        sent - int(flight.acked_bytes[flight.acked_ns <= at][-1:].sum())
        for at, sent in zip(flight.sent_ns.tolist(), flight.sent_bytes.tolist(), strict=True)
    ]
    assert outstanding[before] >= 39_000 > max(outstanding[:before])


def derived(cell: Any, name: str, root: Path, samples: Sequence[Sample] | None = None) -> tuple[dict[str, Any], Any]:
    directory = make_directory(cell, name, root)
    if samples is not None:
        write(directory / "apps" / "ftp.sender.ndjson", samples)
    analyze_cell(cell, directory)
    values = json.loads((directory / "derived" / "measurements.json").read_text())
    rows = json.loads(compressed.read(directory / "derived" / "exchange.json"))["ftp"]
    return {one["metric"]: one["value"] for one in values if one["flow"]}, rows


def chunks_of(node: str, link: str, kind: int, direction: int) -> list[tuple[int, int]]:
    """(ns from T0, TSN) of a recorded capture, read alone."""
    capture = read_captures([DATA / f"sctp-{node}-{link}.pcap.zst"])
    found = capture.chunks[(capture.chunks["type"] == kind) & (capture.chunks["direction"] == direction)]
    base = int(capture.flows["base"][0][direction])
    return [(int(row["time_ns"]) - T0, (base + int(row["tsn"])) % 2**32) for row in found]


def test_recovery_is_what_plain_loops_find(tmp_path: Path) -> None:
    metrics, rows = derived(make_cell("sctp"), "sctp", tmp_path)
    fault, repair = int(FAULT * S), int(REPAIR * S)
    sent, arrived = chunks_of("a", "p1", 0, 0), chunks_of("b", "p1", 0, 0)
    came = {tsn for at, tsn in arrived if at <= repair}
    assert metrics["undelivered_packets"] == len({tsn for at, tsn in sent if at < fault and tsn not in came}) > 0
    back = [at for at, _ in sent if at >= repair]
    assert metrics["data_on_repaired_path_s"] == (pytest.approx((back[0] - repair) / S) if back else None)
    elsewhere = [at for at, _ in chunks_of("a", "p2", 0, 0) if at >= fault]
    other = [row for row in rows if row["moments"].get("first_other_path") == 0]
    assert [row["t_s"] for row in other] == [pytest.approx(elsewhere[0] / S)]
    assert (other[0]["event"], other[0]["node"], other[0]["link"], other[0]["type"]) == ("sent", "a", "p2", "DATA")


def test_events_are_packets_of_the_captures_in_the_order_of_time(tmp_path: Path) -> None:
    _, rows = derived(make_cell("sctp"), "sctp", tmp_path)
    assert [row["t_s"] for row in rows] == sorted(row["t_s"] for row in rows)
    times = {(node, link): set[float]() for node in "ab" for link in ("p1", "p2")}
    for (node, link), seen in times.items():
        capture = read_captures([DATA / f"sctp-{node}-{link}.pcap.zst"])
        seen |= {(at - T0) / 1e9 for at in capture.packets["time_ns"].tolist()}
    for row in rows:
        assert set(row["moments"]) <= set(MOMENTS)
        assert all(-MOST_PACKETS <= place < MOST_PACKETS for place in row["moments"].values())
        if row["node"]:
            assert row["t_s"] in times[row["node"], row["link"]]
    faults = [(row["event"], row["t_s"]) for row in rows if not row["node"]]
    assert faults == [("blackhole", FAULT), ("repair", REPAIR)]
    sent, came = chunks_of("a", "p1", 0, 0), {tsn for _, tsn in chunks_of("b", "p1", 0, 0)}
    lost = {at / 1e9 for at, tsn in sent if tsn not in came}
    marked = [row for row in rows if row["event"] == "sent" and row["type"] == "DATA" and row["link"] == "p1"]
    assert any("lost" in row["note"] for row in marked)
    for row in marked:
        assert ("lost" in row["note"]) == (row["t_s"] in lost)


def test_the_kernels_window_by_its_samples(tmp_path: Path) -> None:
    """cwnd 4380 up to 2 s, then 3000 more a sample of 0.5 s and RTT of 0.1 s; 1500 from a second after the fault."""
    peer = "10.0.0.129"
    capture = read_captures([DATA / "sctp-a-p1.pcap.zst"])
    peer = capture.address(int(capture.packets["path"][0]), 1)
    samples = []
    for number in range(int(STOP * 2)):
        at = number / 2
        cwnd = 4380 if at < 2 else 4380 + 3000 * (number - 3) if at < FAULT + 1 else 1500
        path = PathState(peer, cwnd_bytes=cwnd, srtt_ns=100_000_000)
        samples.append(Sample(MONOTONIC + int(at * S), 0, (path,)))
    metrics, _ = derived(make_cell("sctp"), "sctp", tmp_path, samples)
    window = int(capture.inits["a_rwnd_bytes"][capture.inits["direction"] == 1].max())
    assert metrics["peer_window_bytes"] == window
    assert metrics["cwnd_initial_bytes"] == 4380
    assert metrics["cwnd_at_fault_bytes"] == 4380 + 3000 * (12 - 3)
    assert (metrics["cwnd_lowest_after_fault_bytes"], metrics["cwnd_end_bytes"]) == (1500, 1500)
    # from 3 s to 6 s: 6 samples of 3000 B in 30 round trips, in packets of 1400 B
    assert metrics["cwnd_growth_per_rtt_packets"] == pytest.approx(18_000 / 30 / 1400)
    assert metrics["cwnd_window_time_s"] is None, "a window of that size was never reached"


def test_without_a_fault_there_is_nothing_to_recover_from(tmp_path: Path) -> None:
    metrics, rows = derived(make_cell("sctp", timeline=()), "sctp", tmp_path)
    assert rows == []
    assert metrics["initial_window_packets"] >= 1
    for name in ("undelivered_packets", "first_retransmission_s", "data_on_repaired_path_s", "cwnd_at_fault_bytes"):
        assert metrics[name] is None


ZERO_TCP = (
    Story().handshake().data(50, 1).ack(60, 1001, window=0).data(70, 1001, 1)
    .ack(80, 1001, window=0).ack(300, 1001).data(310, 1001).ack(320, 2001, window=0)
)  # fmt: skip
ZERO_SCTP = at_receiver(
    data(150, 0), sack(160, 0, window=0), data(170, 1), sack(180, 0, window=0), sack(300, 0), sack(320, 1, window=0)
)


@pytest.mark.parametrize(
    ("protocol", "end_ms", "packets"),
    [
        ("tcp", None, 3), ("tcp", 200, 2), ("tcp", 70, 1), ("tcp", 55, 0),
        ("sctp", None, 3), ("sctp", 200, 2), ("sctp", 100, 0),
    ],
)  # fmt: skip
def test_zero_windows_are_counted_at_the_receiver_in_the_flows_window(
    protocol: str, end_ms: int | None, packets: int, tmp_path: Path
) -> None:
    window = Window(0, None if end_ms is None else end_ms * 1_000_000)
    came = ZERO_TCP.packets if protocol == "tcp" else [(T0_STORY + at, packet) for at, packet in ZERO_SCTP]
    observation = observed(flow_of(protocol), tmp_path, receiver=came, window=window)
    assert window_growth_metrics(observation)["zero_window_packets"] == packets


def test_zero_windows_without_the_receivers_capture_have_no_value(tmp_path: Path) -> None:
    observation = observed(flow_of("tcp"), tmp_path, sender=ZERO_TCP.packets)
    assert window_growth_metrics(observation)["zero_window_packets"] is None


FIRST_LOST = Story().handshake().flight(50, 1, 3).ack(90, 1, (1001, 2001)).data(90, 3001).ack(91, 1, (1001, 3001))
NONE_LOST = Story().handshake().flight(50, 1, 3).ack(90, 1001).flight(90, 3001, 2).ack(91, 3001)
UNANSWERED = Story().handshake().flight(50, 1, 3).ack(90, 1)
THREE = [*handshake(), data(250, 0), data(250, 1), data(250, 2)]
SCTP_FIRST_LOST = [*THREE, sack(350, -1, [(1, 1)]), data(350, 3), data(700, 0), sack(800, 3)]
SCTP_NONE_LOST = [*THREE, sack(350, 0), data(350, 3)]


@pytest.mark.parametrize(
    ("protocol", "packets", "wanted"),
    [
        ("tcp", FIRST_LOST.packets, 3),
        ("tcp", NONE_LOST.packets, 3),
        ("tcp", UNANSWERED.packets, None),
        ("sctp", [(T0_STORY + at, raw) for at, raw in SCTP_FIRST_LOST], 3),
        ("sctp", [(T0_STORY + at, raw) for at, raw in SCTP_NONE_LOST], 3),
    ],
    ids=["the first lost", "none lost", "unanswered", "SCTP, the first lost", "SCTP, none lost"],
)
def test_the_initial_window_is_what_leaves_before_any_data_are_acknowledged(
    protocol: str, packets: list[tuple[int, bytes]], wanted: int | None, tmp_path: Path
) -> None:
    flow = flow_of(protocol)
    outstanding = outstanding_of(flow, at_end(flow, tmp_path, packets, "a"))
    assert outstanding is not None and outstanding.initial_packets == wanted
