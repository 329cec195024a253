"""Tracepoints in a guest: the state of every path at every SACK, at no change to a single packet."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from netwarp.core.link_types import LinkImpairment
from netwarp.core.types import Cell, Event
from netwarp.measure.cell_records import kernel_counters
from netwarp.measure.kernel_samples import PathTrace, path_traces, read_trace
from netwarp.store.init_records import Proc
from netwarp.testbed.steps import Step
from support.apps_lab import MS, Options, Run, S, make_cell, run

SHAPE = LinkImpairment(one_way_delay_ns=20 * MS, rate_bit_s=2_000_000, queue_packets=20, loss_ratio=0.01)
# no random loss: a lost INIT makes the second path the primary
FULL = LinkImpairment(one_way_delay_ns=20 * MS, rate_bit_s=2_000_000, queue_packets=12)
FAST = LinkImpairment(one_way_delay_ns=5 * MS, rate_bit_s=50_000_000, queue_packets=40, loss_ratio=0.001)
OUTAGE = (Event(4 * S, "gap", "cut", "p1"), Event(7 * S, "gap", "repair", "p1"))


def traced(protocol: str, paths: int, **changes: object) -> Cell:
    sender: Options = {"tracepoints": True, "sample_interval_ns": 100 * MS}
    arguments = {
        "shape": SHAPE if protocol == "tcp" else FULL,
        "stop_ns": 12 * S,
        "duration_ns": 12 * S,
        "timeline": OUTAGE,
        **changes,
    }
    return make_cell(protocol, paths=paths, sender=sender, **arguments)  # type: ignore[arg-type]


def traces_of(done: Run, cell: Cell) -> dict[str, PathTrace]:
    """The traces of the only flow; its first link is 10.0.0, the second 10.0.1."""
    ready = done.result.records("ready")[0]
    peers = {f"10.0.{number}.129": path.name for number, path in enumerate(cell.flows[0].paths)}
    mss = done.one("sender", "in_force").get("mss_bytes")
    events = read_trace(done.result.directory / "apps" / "trace.bin")
    return path_traces(events, cell.flows[0], peers, mss, ready["t0_monotonic_ns"])


def captures(done: Run) -> dict[str, bytes]:
    folder = done.result.directory / "capture"
    return {file.name: file.read_bytes() for file in sorted(folder.glob("*.pcap"))}


def assert_after_packets(trace: PathTrace, packets: list[int]) -> None:
    """Each event follows a packet of its own within what receiving it costs; a few packets, which the kernel drops
    before they count (a SACK overtaken by a newer one), have none.
    """
    events = np.round(trace.t_s * 1e9).astype(np.int64)
    times = np.array(packets)
    place = np.searchsorted(times, events, side="right") - 1
    assert (place >= 0).all() and len(set(place.tolist())) == len(events)
    assert (events - times[place] < 20_000).all()
    assert 0.98 * len(packets) < len(events) <= len(packets)


@pytest.mark.parametrize(
    ("protocol", "paths", "shape"),
    [
        ("sctp", 2, FULL),
        ("sctp", 2, SHAPE),
        ("sctp", 1, FAST),
        ("tcp", 1, SHAPE),
        ("tcp", 1, FAST),
        ("mptcp", 1, SHAPE),
    ],
)
def test_tracing_changes_no_packet(
    kernel: Path, tmp_path: Path, protocol: str, paths: int, shape: LinkImpairment
) -> None:
    cell = traced(protocol, paths, shape=shape)
    plain = make_cell(
        protocol, shape=shape, paths=paths, stop_ns=12 * S, duration_ns=12 * S, timeline=OUTAGE,
        sender={"sample_interval_ns": 100 * MS},
    )  # fmt: skip
    with_trace = run(kernel, tmp_path / "with", cell).well()
    without = run(kernel, tmp_path / "without", plain).well()
    (record,) = with_trace.result.records("trace")
    assert (record["lost"], record["errno"]) == (0, 0)
    assert record["events"] > 100
    assert not (tmp_path / "without" / "apps" / "trace.bin").exists()
    assert captures(with_trace) == captures(without)


def test_every_sack_shows_every_path(kernel: Path, tmp_path: Path) -> None:
    cell = traced("sctp", 2)
    done = run(kernel, tmp_path, cell).well()
    first, second = (traces_of(done, cell)[name] for name in ("p1", "p2"))
    sacks = sorted(
        time for link in ("p1", "p2") for time in done.times(f"a-{link}", "sctp.chunk_type == 3") if time > 0
    )  # fmt: skip
    assert len(first.t_s) == len(second.t_s)
    assert_after_packets(first, sacks)
    # the samples are the kernel's word too: each is the state after the last SACK before it, seen at the next SACK
    for sample in done.of("sender", "sample"):
        after = int(np.searchsorted(first.t_s * 1e9, sample["t_ns"]))
        if 0 < after < len(first.t_s) and sample["t_ns"] < 4 * S:
            told = [path["cwnd_bytes"] for path in sample["paths"]]
            assert told == [first.cwnd_bytes[after], second.cwnd_bytes[after]]


def test_a_timeout_halves_the_threshold(kernel: Path, tmp_path: Path) -> None:
    """The outage: T3 runs out, ssthresh of the first path is half of its window, at least 4 MTU (RFC 9260 7.2.3)."""
    cell = traced("sctp", 2, shape=LinkImpairment(one_way_delay_ns=20 * MS, rate_bit_s=2_000_000, queue_packets=50))
    done = run(kernel, tmp_path, cell).well()
    trace = traces_of(done, cell)["p1"]
    before = int(np.searchsorted(trace.t_s, 4.0)) - 1
    after = int(np.searchsorted(trace.t_s, 4.5))
    assert trace.cwnd_bytes[before] > 20_000
    assert trace.ssthresh_bytes[after] == pytest.approx(max(trace.cwnd_bytes[before] / 2, 6000), rel=0.2)
    assert trace.cwnd_bytes[after] < trace.cwnd_bytes[before] / 4
    assert trace.flight_bytes[before] > 0


def test_tcps_trace_is_its_samples(kernel: Path, tmp_path: Path) -> None:
    cell = traced("tcp", 1)
    done = run(kernel, tmp_path, cell).well()
    (trace,) = traces_of(done, cell).values()
    acks = done.times("a-p1", f"tcp.srcport == {cell.flows[0].port} && tcp.flags.syn == 0")
    assert_after_packets(trace, acks)
    checked = 0
    for sample in done.of("sender", "sample"):
        (path,) = sample["paths"]
        before = int(np.searchsorted(trace.t_s * 1e9, sample["t_ns"])) - 1
        if 0 < before + 1 < len(trace.t_s) and path["ssthresh_bytes"] is not None and sample["t_ns"] < 4 * S:
            checked += trace.ssthresh_bytes[before + 1] == path["ssthresh_bytes"]
    assert checked > 10
    assert np.nanmin(trace.srtt_s[1:]) >= 0.040


def test_records_that_do_not_fit_are_counted(kernel: Path, tmp_path: Path) -> None:
    def small(item: Step) -> Step:
        if item.verb != "trace":
            return item
        fields = [(key, "16384" if key == "buffer_bytes" else value) for key, value in item.fields]
        return replace(item, fields=tuple(fields))

    done = run(kernel, tmp_path, traced("sctp", 2), change=small).well()
    (record,) = done.result.records("trace")
    assert record["lost"] > 100
    assert 0 < record["events"] < 1000


def test_the_kernels_counters_are_recorded(kernel: Path, tmp_path: Path) -> None:
    """And agree with what the socket and the capture say."""
    tcp = run(kernel, tmp_path / "tcp", traced("tcp", 1)).well()
    counters = kernel_counters(msgspec.convert(tcp.result.records("proc"), list[Proc]), ["a", "b"])
    again = tcp.sent["kernel"]["tcp_info"]["total_retrans_packets"]
    assert counters["a"]["Tcp.RetransSegs"] == again > 0
    assert counters["b"]["Tcp.RetransSegs"] == 0
    sctp = run(kernel, tmp_path / "sctp", traced("sctp", 2)).well()
    counters = kernel_counters(msgspec.convert(sctp.result.records("proc"), list[Proc]), ["a", "b"])
    assert (counters["a"]["Sctp.SctpActiveEstabs"], counters["b"]["Sctp.SctpPassiveEstabs"]) == (1, 1)
    packets = sum(
        len(sctp.times(f"a-{link}", "sctp && ip.src != 10.0.0.129 && ip.src != 10.0.1.129")) for link in ("p1", "p2")
    )
    assert counters["a"]["Sctp.SctpOutSCTPPacks"] == packets
    assert counters["a"]["Sctp.SctpT3Retransmits"] > 0


def test_mptcps_subflows_are_traced_in_bytes(kernel: Path, tmp_path: Path) -> None:
    cell = traced("mptcp", 1)
    done = run(kernel, tmp_path, cell).well()
    (path,) = done.sent["kernel"]["paths"]
    events = read_trace(done.result.directory / "apps" / "trace.bin")
    ready = done.result.records("ready")[0]["t0_monotonic_ns"]
    mss = path["tcp_info"]["snd_mss_bytes"]
    assert "mss_bytes" not in done.one("sender", "in_force")
    found = path_traces(events, cell.flows[0], {"10.0.0.129": "p1"}, mss, ready)["p1"]
    assert set(np.unique(found.cwnd_bytes / mss)) >= {10.0}
