"""Ordinary studies, said as a researcher says them: each cell completes, and its numbers are what they are called."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import netwarp
import pytest
from netwarp import Experiment

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
