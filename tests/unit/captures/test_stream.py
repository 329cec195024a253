"""Reading in constant memory: the same totals as reading at once, and series that add up to them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from netwarp.captures import read_captures
from netwarp.captures.capture import ROW_TABLES, TOTAL_TABLES
from netwarp.captures.native import Rows
from netwarp.captures.stream import BINS, LEAST_BINS, SERIES_FLOWS, FlowBins, read_stream
from netwarp.core.errors import CaptureError
from scapy.layers.inet import IP, TCP
from support.captures import POINTS, T, ether, pcap, recorded, segment


@pytest.mark.parametrize(("name", "node", "links"), POINTS, ids=str)
@pytest.mark.parametrize(("keep", "part"), [(0, 1), (0, 97), (0, 65536), (50, 97), (None, 97)])
def test_totals_are_those_of_reading_at_once_and_series_add_up(
    name: str, node: str, links: tuple[str, ...], keep: int | None, part: int
) -> None:
    files = recorded(name, node, links)
    whole, stream = read_captures(files), read_stream(files, keep=keep, part_packets=part)
    assert stream.whole == (keep is None)
    for table in (*TOTAL_TABLES, *(ROW_TABLES if keep is None else ())):
        assert np.array_equal(getattr(stream.capture, table), getattr(whole, table)), table
    if not stream.whole:
        assert all(len(getattr(stream.capture, table)) == 0 for table in ROW_TABLES)
    assert stream.t0_ns == whole.packets["time_ns"][0]
    times = stream.times_s()
    for flow in range(len(whole.flows)):
        for direction in (0, 1):
            mine = whole.packets[(whole.packets["flow"] == flow) & (whole.packets["direction"] == direction)]
            edges = stream.t0_ns + np.append(np.round(times * 1e9), 2.0**62).astype(np.int64)
            series = stream.flows[flow]
            for column, bins in (("new_bytes", series.new_bytes), ("is_retransmission", series.retransmitted)):
                by_hand = np.histogram(mine["time_ns"], edges, weights=mine[column].astype(np.int64))[0]
                assert bins[direction][: len(times)].tolist() == by_hand.tolist()
                assert not bins[direction][len(times) :].any()
                rates = stream.rate_bit_s(bins[direction])
                np.testing.assert_allclose(rates, by_hand * 8e9 / stream.bin_ns, rtol=1e-12)
            said(series, direction, mine, stream.t0_ns)


def said(series: FlowBins, direction: int, mine: Rows, t0_ns: int) -> None:
    """Goodput and silences, from all rows at once."""
    fresh = mine[mine["new_bytes"] > 0]
    if len(fresh) > 1 and fresh["time_ns"][-1] > fresh["time_ns"][0]:
        span_s = int(fresh["time_ns"][-1] - fresh["time_ns"][0]) / 1e9
        assert series.goodput_bit_s(direction) == pytest.approx(int(fresh["new_bytes"][1:].sum()) * 8 / span_s)
    else:
        assert series.goodput_bit_s(direction) is None
    data = mine[mine["payload_bytes"] > 0]
    pauses = np.diff(data["time_ns"])
    longest = sorted((int(pause) / 1e9 for pause in pauses if pause > 0), reverse=True)[:5]
    assert [length for _, length, _ in series.silences[direction]] == longest
    for begin, length, again in series.silences[direction]:
        ends = np.flatnonzero(data["time_ns"] == t0_ns + round((begin + length) * 1e9))
        assert again in data["is_retransmission"][ends]


@settings(max_examples=40)
@given(gaps=st.lists(st.integers(0, 40_000_000_000), min_size=1, max_size=60), part=st.integers(1, 9))
def test_bins_get_wider_and_lose_nothing(tmp_path_factory: pytest.TempPathFactory, gaps: list[int], part: int) -> None:
    times = T + np.cumsum(gaps)
    path = tmp_path_factory.mktemp("stream") / "0.pcap"
    path.write_bytes(pcap([(int(time), segment(1 + i * 10, 10)) for i, time in enumerate(times)]))
    stream = read_stream([path], part_packets=part)
    span = int(times[-1] - times[0])
    assert stream.bin_ns * BINS > span
    assert stream.bin_ns == 1_000_000 or span // stream.bin_ns >= LEAST_BINS, "no wider than eight packets a bin need"
    assert str(stream.bin_ns).rstrip("0") in ("1", "2")
    expected = np.bincount((times - times[0]) // stream.bin_ns, minlength=BINS) * 10
    assert stream.flows[0].new_bytes[0].tolist() == expected.tolist()
    assert len(stream.times_s()) == span // stream.bin_ns + 1


def test_only_so_many_flows_have_series(tmp_path: Path) -> None:
    frames = [
        ether(IP(src="10.0.0.1", dst="10.0.0.2") / TCP(sport=2000 + n % 1100, dport=80, seq=5 + n, flags="A") / b"x")
        for n in range(2200)
    ]
    path = tmp_path / "0.pcap"
    path.write_bytes(pcap([(T + n, frame) for n, frame in enumerate(frames)]))
    stream = read_stream([path], part_packets=300)
    assert len(stream.capture.flows) == 1100
    assert sorted(stream.flows) == list(range(SERIES_FLOWS))
    assert all(flow.new_bytes.sum() == 2 for flow in stream.flows.values())


@pytest.mark.parametrize("start_ns", [0, T])
def test_goodput_counts_from_the_first_data_also_at_time_0(start_ns: int, tmp_path: Path) -> None:
    """Simulators begin there."""
    packets = [(start_ns + n * 1_000_000, segment(1 + 1000 * n, 1000, ack=1)) for n in range(10)]
    (tmp_path / "0.pcap").write_bytes(pcap(packets))
    for part in (3, 100):
        flow = read_stream([tmp_path / "0.pcap"], part_packets=part).flows[0]
        assert flow.goodput_bit_s(0) == pytest.approx(8e6)


def test_times_before_the_first_packet_and_no_packet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "0.pcap"
    path.write_bytes(pcap([(T, segment(1, 10)), (T - 10**9, segment(11, 10))]))
    stream = read_stream([path])  # sorted
    assert (stream.t0_ns, stream.flows[0].new_bytes[0][0]) == (T - 10**9, 10)
    assert stream.capture.sources["backwards"].tolist() == [1]
    monkeypatch.setattr("netwarp.captures.stream.PACKETS_IN_MEMORY", 1)  # too many to sort
    stream = read_stream([path])
    assert stream.flows[0].new_bytes[0][0] == 20
    assert stream.capture.sources["backwards"].tolist() == [1]
    path.write_bytes(pcap([]))
    empty = read_stream([path])
    assert (empty.t0_ns, empty.flows, empty.times_s().tolist()) == (0, {}, [0.0])
    with pytest.raises(CaptureError, match="gone"):
        read_stream([tmp_path / "gone.pcap"])


PEAK = """
import sys
from netwarp.captures.stream import read_stream
print(int(read_stream([sys.argv[1]]).capture.sources["packets"][0]))
print(*(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


def test_memory_does_not_grow_with_the_capture(tmp_path: Path) -> None:
    """A capture seven times as long, of more packets than a part: at most 4 MB more at the highest point."""
    peaks = []
    frames = [segment(1 + i * 100, 100)[:60] for i in range(1000)]
    for times in (70, 500):
        path = tmp_path / "0.pcap"
        with path.open("wb") as out:
            out.write(pcap([]))
            for number in range(times):
                out.write(pcap([(T + number * 10**6 + i, frame, 154) for i, frame in enumerate(frames)])[24:])
        done = subprocess.run([sys.executable, "-c", PEAK, path], check=True, capture_output=True, text=True)
        packets, peak = (int(word) for word in done.stdout.split())
        assert packets == times * 1000
        peaks.append(peak)
    assert peaks[1] < peaks[0] + 4096
