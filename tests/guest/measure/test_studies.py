"""Ordinary studies, said as a researcher says them: each cell completes, and its numbers are what they are called."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import netwarp
import pytest
from netwarp import Experiment
from netwarp.cli import main
from netwarp.core.executables import find_executable
from netwarp.store import compressed

Numbers = dict[tuple[str, str], float | None]


@pytest.fixture
def studied(kernel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Experiment], netwarp.Run]:
    """Runs an experiment of which each cell must complete."""
    monkeypatch.setenv("NETWARP_KERNEL", str(kernel))

    def run(experiment: Experiment) -> netwarp.Run:
        done = experiment.run(out=tmp_path / "run", backend="virtual", report=False)
        assert set(done.outcomes) == {"COMPLETED"}, [cell["reason"] for cell in done.table("cells")]
        return done

    return run


def numbers(run: netwarp.Run, **levels: str) -> Numbers:
    """(flow, metric) -> value, of the only cell with these levels."""
    (cell,) = [row["cell_id"] for row in run.table("cells") if levels.items() <= row.items()]
    return {(row["flow"], row["metric"]): row["value"] for row in run.table("measurements") if row["cell_id"] == cell}


def test_short_flows_alone_complete(studied: Callable[[Experiment], netwarp.Run]) -> None:
    s = Experiment("shortflow", duration="3 s")
    s.set(shape={"kind": "dumbbell", "pairs": 1})
    bottleneck = s.link("bottleneck", rate="20 Mbit/s", rtt="30 ms", queue="100 packets")
    f = s.flow("f", "a1", "b1", protocol="tcp", paths=["a1"], bytes="1806 B")
    s.factor("bytes", ["1500 B", "1806 B", "2487 B", "5000 B"], sets=f.bytes)
    s.factor("rate", ["20 Mbit/s", "1 Gbit/s"], sets=bottleneck.rate)
    studied(s)


def test_a_burst_is_legal_on_one_link_and_over_two(studied: Callable[[Experiment], netwarp.Run]) -> None:
    s = Experiment("burst", duration="12 s")
    pod, r, b = s.host("pod"), s.router("r"), s.host("b")
    veth = s.link("veth", pod, r, rate="2 Gbit/s", queue="1000 packets", one_way_delay="50 us")
    out = s.link("out", r, b, one_way_delay="50 us", forward={"rate": "10 Mbit/s", "burst": "32 kB", "queue": "31 kB"})
    s.flow("x", pod, b, protocol="tcp", paths=[{"sender": veth, "receiver": out}], stop="10 s")
    s.factor("burst", ["1600 B", "32 kB", "256 kB", "32 MB"], sets="link.out.forward.burst")
    run = studied(s)
    assert (numbers(run, burst="32 MB")["x", "utilization_ratio"] or 0) > 3


@pytest.mark.parametrize("seen", ["ends", "links", "all"])
def test_marks_are_counted_wherever_they_are_captured(studied: Callable[[Experiment], netwarp.Run], seen: str) -> None:
    s = Experiment("ecnrouter", duration="5 s")
    s.set(shape={"kind": "dumbbell", "pairs": 1})
    for node in ("a1", "b1"):
        s.node(node, sysctl={"net.ipv4.tcp_ecn": "1"})
    aqm = {"kind": "codel", "ecn": True}
    s.link("bottleneck", rate="20 Mbit/s", rtt="20 ms", queue="500 packets", forward={"aqm": aqm})
    s.flow("f", "a1", "b1", protocol="tcp", paths=["a1"])
    s.factor("aqm", ["codel", "fq_codel", "pie"], sets="link.bottleneck.forward.aqm.kind")
    if seen == "links":
        s.set(measure={"links": ["bottleneck.forward"]})
    if seen == "all":
        s.set(captures="all")
    run = studied(s)
    for aqm_kind in ("codel", "fq_codel", "pie"):
        found = numbers(run, aqm=aqm_kind)
        assert found["", "aqm_marked_packets"] == found["f", "ecn_marked_packets"]
        assert (found["", "aqm_marked_packets"] or 0) > 0


def kernel_drops(run: netwarp.Run, cell_id: str) -> int:
    """What the qdiscs of the only hop dropped, by its last dump; a root counts what is dropped below it."""
    environment = json.loads((run.directory.cell(cell_id).root / "environment.json").read_text())
    last = {entry["namespace"]: entry["qdiscs"] for entry in environment["network"]["qdiscs"]}
    return sum(qdisc["dropped_packets"] for qdisc in last["p.hop"] if qdisc["parent"] is None)


def test_what_is_lost_was_dropped_and_what_waits_is_no_loss(studied: Callable[[Experiment], netwarp.Run]) -> None:
    s = Experiment("losses", duration="12 s")
    a, b = s.host("a"), s.host("b")
    p = s.link("p", a, b, rate="10 kbit/s", queue="500 packets", rtt="40 ms")
    f = s.flow("f", a, b, protocol="tcp", paths=[p])
    s.flow("g", a, b, protocol="tcp", paths=[p], start="1 s")
    s.factor("rate", ["2 kbit/s", "64 kbit/s", "1 Mbit/s"], sets=p.rate)
    s.factor("queue", ["5 packets", "500 packets"], sets=p.queue)
    s.factor("stop", ["9 s", "12 s"], sets=f.stop)
    s.set(measure={"links": ["p.forward", "p.backward"]})
    run = studied(s)
    for cell in run.table("cells"):
        found = numbers(run, rate=cell["rate"], queue=cell["queue"], stop=cell["stop"])
        lost = (found["p.forward", "lost_packets"] or 0) + (found["p.backward", "lost_packets"] or 0)
        assert lost == kernel_drops(run, cell["cell_id"]), cell
        assert lost == 0 or cell["queue"] == "5 packets"
        for name in ("lost_packets", "waiting_packets"):
            assert found["f", name] + found["g", name] == found["p.forward", name], (cell, name)
        assert cell["rate"] != "2 kbit/s" or (found["p.forward", "waiting_packets"] or 0) > 0


def test_jitter_alone_is_no_queue(studied: Callable[[Experiment], netwarp.Run]) -> None:
    s = Experiment("jitter", duration="20 s")
    a, b = s.host("a"), s.host("b")
    p = s.link("p", a, b, rate="100 Mbit/s", queue="500 packets", rtt="40 ms", backward={"jitter": "5 ms"})
    s.flow("f", a, b, protocol="tcp", paths=[p], sender={"message_rate": "500 kbit/s"})
    s.factor("queue", ["500 packets", "1 MB"], sets=p.queue)
    s.set(measure={"links": ["p.forward", "p.backward"]})
    run = studied(s)
    for queue in ("500 packets", "1 MB"):
        found = numbers(run, queue=queue)
        assert abs(found["p.backward", "queue_delay_mean_s"] or 1) < 3e-4
        assert found["p.backward", "queue_delay_max_s"] == pytest.approx(0.005, rel=0.1)
        assert found["p.forward", "queue_delay_mean_s"] == pytest.approx(0, abs=1e-5)


def test_flows_that_do_not_run_are_not_starved(studied: Callable[[Experiment], netwarp.Run]) -> None:
    s = Experiment("spanjain", duration="10 s")
    a, b = s.host("a"), s.host("b")
    p = s.link("p", a, b, rate="10 Mbit/s", queue="50 packets", rtt="40 ms")
    s.flow("x", a, b, protocol="tcp", paths=[p], stop="4 s")
    y = s.flow("y", a, b, protocol="tcp", paths=[p], stop="4 s")
    s.flow("z", a, b, protocol="tcp", paths=[p], start="4.2 s")
    s.factor("y_stop", ["4 s", "10 s"], sets=y.stop)
    s.set(measure={"span": {"from": "5 s", "to": "10 s"}})
    run = studied(s)
    assert numbers(run, y_stop="4 s")["", "span_jain_index"] is None
    two = numbers(run, y_stop="10 s")
    rates = [two[name, "span_goodput_bit_s"] or 0 for name in ("y", "z")]
    assert two["", "span_jain_index"] == pytest.approx(sum(rates) ** 2 / (2 * sum(rate**2 for rate in rates)))


@pytest.mark.parametrize("odd", ["9.95 s", "9.97 s"])
def test_a_flow_that_nothing_answers_takes_no_others_numbers(
    studied: Callable[[Experiment], netwarp.Run], odd: str
) -> None:
    s = Experiment("never", duration="10 s")
    a, b = s.host("a"), s.host("b")
    p = s.link("p", a, b, rate="10 Mbit/s", queue="50 packets", rtt="40 ms")
    s.flow("ok", a, b, protocol="tcp", paths=[p])
    s.flow("odd", a, b, protocol="tcp", paths=[p], start=odd)
    s.set(measure={"links": ["p.forward"]})
    found = numbers(studied(s))
    assert found["ok", "goodput_bit_s"] == pytest.approx(9.6e6, rel=0.01)
    assert found["odd", "goodput_bit_s"] is None
    assert (found["ok", "broken_connections"], found["odd", "broken_connections"]) == (0, 1)
    assert found["odd", "undelivered_bytes"] == 0


def test_the_initial_window_is_ten_packets_on_a_slow_link(studied: Callable[[Experiment], netwarp.Run]) -> None:
    s = Experiment("slow", duration="30 s")
    a, b = s.host("a"), s.host("b")
    p = s.link("p", a, b, rate="10 kbit/s", queue="500 packets", rtt="40 ms")
    s.flow("f", a, b, protocol="tcp", paths=[p])
    s.factor("rate", ["4 kbit/s", "64 kbit/s", "10 Mbit/s"], sets=p.rate)
    run = studied(s)
    for rate in ("4 kbit/s", "64 kbit/s", "10 Mbit/s"):
        assert numbers(run, rate=rate)["f", "initial_window_packets"] == 10


def test_a_dead_flow_is_not_fast(studied: Callable[[Experiment], netwarp.Run]) -> None:
    """Of 3 MB each; one loses its link for good after 1 s and gives up."""
    s = Experiment("dead", duration="60 s")
    a, b, c, r = s.host("a", sysctl={"net.ipv4.tcp_retries2": "4"}), s.host("b"), s.host("c"), s.router("r")
    way = {"rate": "10 Mbit/s", "queue": "50 packets", "rtt": "10 ms"}
    left, right, out = s.link("left", a, r, **way), s.link("right", c, r, **way), s.link("out", r, b, **way)
    for name, node, link in (("dies", a, left), ("lives", c, right)):
        paths = [{"sender": link, "receiver": out}]
        s.flow(name, node, b, protocol="tcp", paths=paths, bytes="3 MB")
    s.event("cut", action="cut", link=left, at="1 s")
    found = numbers(studied(s))
    assert (found["dies", "broken_connections"], found["lives", "broken_connections"]) == (1, 0)
    assert (found["dies", "undelivered_bytes"] or 0) > 1e6
    assert (found["dies", "goodput_bit_s"] or 0) < (found["lives", "goodput_bit_s"] or 0)
    assert found["dies", "outage_s"] is None


def test_an_invalid_cells_numbers_can_be_looked_at_and_are_in_no_table(
    kernel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The receiving program's count is altered, as if the wire and it did not agree."""
    monkeypatch.setenv("NETWARP_KERNEL", str(kernel))
    s = Experiment("unsure", duration="3 s")
    a, b = s.host("a"), s.host("b")
    p = s.link("p", a, b, rate="10 Mbit/s", queue="50 packets", rtt="40 ms")
    s.flow("f", a, b, protocol="tcp", paths=[p])
    s.factor("rate", ["10 Mbit/s", "1 Mbit/s"], sets=p.rate)
    run = s.run(out=tmp_path / "run", backend="virtual")
    good, bad = (cell["cell_id"] for cell in run.table("cells"))
    output = run.directory.cell(str(bad)).apps / "f.receiver.ndjson"
    text = compressed.read(output).decode()
    compressed.packed(output).unlink(missing_ok=True)
    output.write_text(re.sub(r'"unique_bytes":\d+', '"unique_bytes":1', text))
    assert main(["analyze", str(run.path), "--with-invalid"]) == 1
    said = capsys.readouterr().out
    assert f"INVALID {bad}: payload f" in said and "(not to be relied on) f: goodput" in said
    again = netwarp.open_run(run.path)
    assert {row["cell_id"] for row in again.table("measurements")} == {good}
    marked = again.table("invalid")
    assert {row["cell_id"] for row in marked} == {bad}
    assert all("payload f" in str(row["reason"]) for row in marked)
    (goodput,) = [row["value"] for row in marked if (row["flow"], row["metric"]) == ("f", "goodput_bit_s")]
    assert float(goodput or 0) == pytest.approx(0.96e6, rel=0.02)
    netwarp.report(run.path)
    script = (again.directory.report / "cells" / f"{bad}.js").read_text()
    assert '"outcome": "INVALID"' in script.replace('":"', '": "') and "goodput_bit_s" in script


@pytest.mark.skipif(find_executable("iperf3") is None, reason="iperf3 is not installed")
def test_iperf3s_goodput_is_of_its_data_connection(studied: Callable[[Experiment], netwarp.Run]) -> None:
    """By tshark: the payload of the connection that opened last, from its first arrival to the flow's stop."""
    s = Experiment("iperfsat", duration="25 s")
    a, b = s.host("a"), s.host("b")
    p = s.link("p", a, b, rate="2 Mbit/s", queue="100 packets", rtt="600 ms")
    s.flow("perf", a, b, protocol="tcp", paths=[p], start="1 s", stop="11 s", program="iperf3")
    run = studied(s)
    (row,) = run.table("cells")
    plain = run.path / "b-p.pcap"
    plain.write_bytes(compressed.read(run.directory.cell(str(row["cell_id"])).capture / "b-p.pcap"))
    fields = ["frame.time_epoch", "tcp.stream", "tcp.len", "tcp.seq"]
    asked = [word for field in fields for word in ("-e", field)]
    command = ["tshark", "-r", str(plain), "-Y", "tcp.dstport == 5001 && tcp.len > 0", "-T", "fields", *asked]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\n")[:-1]
    packets = [(float(t), int(stream), int(size), int(seq)) for t, stream, size, seq in map(str.split, lines)]
    last = max(stream for _, stream, _, _ in packets)
    data = sorted({seq: (t - 1_700_000_000, size) for t, stream, size, seq in packets if stream == last}.values())
    within = [(t, size) for t, size in data if t <= 11]
    rate = sum(size for _, size in within[1:]) * 8 / (11 - within[0][0])
    found = numbers(run)
    assert found["perf", "goodput_bit_s"] == pytest.approx(rate, rel=1e-3)
    assert rate == pytest.approx(1.36e6, rel=0.02)
