"""DualPI2 and AccECN on Linux 7.3: read back, marks counted at both ends and by the kernel, and nowhere else.

Skipped where no 7.3 is built: `netwarp kernel build --second` takes minutes, and CI does not build it.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import netwarp
import pytest
from netwarp.core.types import Outcome
from netwarp.guestkernel.cache import find_named
from netwarp.store.run_dir import RunDir
from support.captures import plain
from support.run_files import RunFiles, load_run
from support.specs import two_hosts

SPEC = two_hosts(
    'name = "l4s"\nduration = "8 s"\nkernel = "{linux}"',
    'one_way_delay = "10 ms"\nrate = "10 Mbit/s"\nqueue = "1000 packets"\nforward = { aqm = { kind = "dualpi2" } }',
    """
[flow.x]
protocol = "tcp"
[flow.low]
protocol = "udp"
message_size = "1000 B"
sender = { interval = "2 ms", ecn = "ect1" }
[default.node]
sysctl = { "net.ipv4.tcp_ecn" = "{ecn}" }
[parameter]
linux = "7.3"
[measure]
links = ["p1.forward"]
[factor.ecn]
levels = ["0", "1", "3"]
[factor.step]
levels = ["1 ms", "5 packets"]
[factor.step.level."5 packets"]
link.p1.forward.aqm = { step = "5 packets", step_from = "2 packets", coupling = 3, drop_early = true }
[experiment.ecn]
factors = ["ecn"]
fixed = { step = "1 ms" }
[experiment.step]
factors = ["step"]
fixed = { ecn = "1" }
""",
)


pytestmark = pytest.mark.skipif(
    find_named("7.3") is None, reason="no Linux 7.3 is built here: netwarp kernel build --second"
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFiles:
    folder = tmp_path_factory.mktemp("l4s")
    (folder / "spec.toml").write_text(SPEC)
    return load_run(netwarp.run(folder / "spec.toml", out=folder / "run", report=False).path).completed()


def metrics_of(run: RunFiles, flow: str, **factors: str) -> dict[str, float]:
    (found,) = (metrics for row, metrics in run.measured(flow) if factors.items() <= row.items())
    return found


@pytest.mark.parametrize("ecn", ["0", "1", "3"])
def test_marks_are_those_that_the_kernel_counted(run: RunFiles, ecn: str) -> None:
    found, low, whole = (metrics_of(run, flow, ecn=ecn, step="1 ms") for flow in ("x", "low", ""))
    assert found["sent_ce_packets"] == found["sent_ect1_packets"] == found["arrived_ect1_packets"] == 0
    assert low["sent_ce_packets"] == low["sent_ect0_packets"] == low["arrived_not_ect_packets"] == 0
    assert low["ecn_marked_packets"] > 0 and low["lost_datagrams"] == 0
    under_way = low["sent_ect1_packets"] - low["arrived_ect1_packets"] - low["ecn_marked_packets"]
    assert 0 <= under_way <= 8  # at the flow's end
    marked = found["ecn_marked_packets"] + low["ecn_marked_packets"]
    # DualPI2 counts a packet of L twice that both its step and its probability mark
    assert marked <= whole["aqm_marked_packets"] <= marked + low["ecn_marked_packets"]
    if ecn == "0":
        assert found["ecn_marked_packets"] == found["sent_ect0_packets"] == 0
        assert whole["aqm_dropped_packets"] > 0
        return
    assert found["ecn_marked_packets"] > 0
    assert found["arrived_not_ect_packets"] < 10 < found["arrived_ect0_packets"]
    arrived = found["arrived_ect0_packets"] + found["arrived_not_ect_packets"] + found["ecn_marked_packets"]
    assert arrived == found["packets"]


def test_the_low_latency_queue_is_short(run: RunFiles) -> None:
    """Beside a flow that fills the classic queue to its target of 15 ms, datagrams with ECT(1) wait for some 1 ms."""
    low = metrics_of(run, "low", ecn="1", step="1 ms")
    assert 0.010 < low["one_way_delay_min_s"] < low["one_way_delay_p99_s"] < 0.010 + 0.0035
    link = metrics_of(run, "p1.forward", ecn="1", step="1 ms")
    assert link["low_latency_queue_delay_p99_s"] < 0.0025
    assert 0.010 < link["classic_queue_delay_mean_s"] < 0.020


def test_accecn_is_asked_for_in_the_handshake(run: RunFiles) -> None:
    """AE, CWR and ECE of the SYN are set (draft-ietf-tcpm-accurate-ecn 3.1), without AccECN CWR and ECE alone."""
    for ecn, flags in (("0", "0x0002"), ("1", "0x00c2"), ("3", "0x01c2")):
        (capture,) = run.cell(ecn=ecn, step="1 ms").captures("a", "p1")
        syns = "tcp.flags.syn == 1 && tcp.flags.ack == 0"
        asked = ["tshark", "-r", "-", "-Y", syns, "-T", "fields", "-e", "tcp.flags"]
        seen = subprocess.run(asked, input=plain(capture), capture_output=True, check=True)
        assert seen.stdout.decode().split() == [flags]


def test_an_older_kernel_cannot_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "spec.toml").write_text(SPEC.replace('linux = "7.3"', 'linux = "6.12"'))
    older = netwarp.run(tmp_path / "spec.toml", out=tmp_path / "run", where={"ecn": "3"}, report=False)
    (cell,) = older.plan.cells
    outcome = RunDir(older.path).cell(cell.id).read_outcome()
    assert outcome.outcome is Outcome.UNSUPPORTED
    assert "link p1 has aqm dualpi2, which Linux 6.12" in outcome.reason and 'say kernel = "7.3"' in outcome.reason
