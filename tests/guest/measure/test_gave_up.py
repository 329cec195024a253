"""A transport that gives its connection up under a fault has done what it was set to: a result, no failure."""

from __future__ import annotations

from pathlib import Path

import pytest
from netwarp.store.tables import read_rows
from support.chain_kit import Checkout, all_completed, written

SPEC = """\
format = 1
name = "gave-up"
duration = "12 s"
[node.a]
sysctl = { "net.ipv4.tcp_retries2" = "3" }
[node.b]
[link.p1]
between = ["a", "b"]
rate = "2 Mbit/s"
queue = "20 packets"
one_way_delay = "10 ms"
[flow.bulk]
from = "a"
to = "b"
protocol = "tcp"
paths = ["p1"]
start = "500 ms"
[factor.protocol]
levels = ["tcp", "sctp"]
[factor.protocol.sctp]
flow.bulk.protocol = "sctp"
flow.bulk.sender = { rto_initial = "200 ms", rto_min = "200 ms", rto_max = "200 ms", association_max_retrans = 4 }
[event.dead]
action = "blackhole"
link = "p1"
at = "2 s"
"""


@pytest.mark.parametrize(("protocol", "low", "high"), [("tcp", 1.5 + 15 * 0.2, 8.0), ("sctp", 1.5 + 4 * 0.2, 3.0)])
def test_a_dead_path(checkout: Checkout, tmp_path: Path, protocol: str, low: float, high: float) -> None:
    """TCP after tcp_retries2 doublings of its RTO (0.2 s or more), SCTP with the error after association_max_retrans
    (RFC 9260 8.1), the first of which may be timed from just before the fault.
    """
    spec = written(tmp_path / "spec.toml", SPEC)
    out = tmp_path / "run"
    checkout.run("run", spec, "--no-report", "--where", f"protocol={protocol}", "--out", out, cwd=tmp_path).ok()
    all_completed(out)
    measured = {row["metric"]: row["value"] for row in read_rows(out / "tables" / "measurements.csv")}
    assert low <= float(measured["gave_up_s"]) <= high
    assert measured["outage_s"] == "", "what never ended has no length"
    assert float(measured["payload_bytes"]) > 0
