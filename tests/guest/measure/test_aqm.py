"""Active queue management on real kernels: read back, drops or marks by ECN, and the marks in the captures."""

import subprocess

import pytest
from support.chain_kit import Checkout
from support.run_files import RunFiles
from support.specs import two_hosts

SPEC = two_hosts(
    'name = "aqm"\nduration = "8 s"',
    'one_way_delay = "10 ms"\nrate = "5 Mbit/s"\nqueue = "100 packets"',
    """
protocol = "tcp"
[flow.x]
[default.node]
sysctl = { "net.ipv4.tcp_ecn" = "{ecn}" }
[event.slower]
action = "change"
link = "p1"
directions = ["forward"]
rate = "2.5 Mbit/s"
at = "4 s"
for = "2 s"
[factor.ecn]
levels = ["0", "1"]
[factor.aqm]
levels = ["red", "codel", "fq_codel", "pie", "cake"]
[factor.aqm.level.red]
link.p1.forward.aqm = { kind = "red", min = "5 packets", max = "15 packets", max_p = "10 %", ecn = true }
[factor.aqm.level.codel]
link.p1.forward.aqm = { kind = "codel", ecn = true }
[factor.aqm.level.fq_codel]
link.p1.forward.aqm = { kind = "fq_codel" }
[factor.aqm.level.pie]
link.p1.forward.aqm = { kind = "pie", ecn = true }
[factor.aqm.level.cake]
link.p1.forward = { queue = "4 MiB", aqm = { kind = "cake" } }
[experiment.marks]
factors = ["aqm"]
fixed = { ecn = "1" }
[experiment.drops]
factors = ["ecn"]
fixed = { aqm = "codel" }
""",
)


@pytest.fixture(scope="module")
def run(checkout: Checkout, tmp_path_factory: pytest.TempPathFactory) -> RunFiles:
    """All kinds with ECN, CoDel without it too."""
    return checkout.run_spec(tmp_path_factory.mktemp("aqm"), SPEC, "--no-report").completed()


def metrics_of(run: RunFiles, **factors: str) -> dict[str, float]:
    """Those of the only cell that has these levels: of its flow, and its own."""
    (found,) = (metrics for row, metrics in run.measured() if factors.items() <= row.items())
    return found


@pytest.mark.parametrize("kind", ["red", "codel", "fq_codel", "pie", "cake"])
def test_marks_that_the_kernel_counted_came(run: RunFiles, kind: str) -> None:
    """A cell in which they differ, or in which a qdisc is not as asked (before and after a change), is INVALID."""
    assert metrics_of(run, aqm=kind, ecn="1")["aqm_marked_packets"] > 5
    checks = run.cell(aqm=kind, ecn="1").checks
    assert checks["ECN marks of p1 forward"]["ok"]
    assert "ECN marks of p1 backward" not in checks


def test_tshark_sees_the_same_marks(run: RunFiles) -> None:
    (capture,) = run.cell(aqm="codel", ecn="1").captures("b", "p1")
    marked = subprocess.run(
        ["tshark", "-r", capture, "-Y", "ip.dsfield.ecn == 3", "-T", "fields", "-e", "frame.number"],
        capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    metrics = metrics_of(run, aqm="codel", ecn="1")
    assert len(marked) == metrics["aqm_marked_packets"]
    assert metrics["retransmitted_packets"] == metrics["aqm_dropped_packets"] == 0


def test_without_ecn_the_same_queue_drops(run: RunFiles) -> None:
    metrics = metrics_of(run, aqm="codel", ecn="0")
    assert metrics["aqm_marked_packets"] == 0
    assert metrics["aqm_dropped_packets"] > 5
    # what is dropped just before the flow's end is sent again after it
    assert 0 <= metrics["aqm_dropped_packets"] - metrics["retransmitted_packets"] <= 2
