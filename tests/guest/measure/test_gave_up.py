"""A transport that gives its connection up under a fault: a result, not a failure."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.chain_kit import Checkout, two_hosts

SPEC = two_hosts(
    """
[factor.protocol]
levels = ["tcp", "sctp"]
[factor.protocol.level.sctp]
flow.bulk.protocol = "sctp"
flow.bulk.sender = { rto_initial = "200 ms", rto_min = "200 ms", rto_max = "200 ms", association_max_retrans = 4 }
[node.a.sysctl]
"net.ipv4.tcp_retries2" = "3"
[event]
dead = { action = "blackhole", link = "p1", at = "2 s" }
""",
    name="gave-up",
    duration="12 s",
    delay="10 ms",
    flow='start = "500 ms"',
)


@pytest.mark.parametrize(("protocol", "low", "high"), [("tcp", 1.5 + 15 * 0.2, 8.0), ("sctp", 1.5 + 4 * 0.2, 3.0)])
def test_a_dead_path(checkout: Checkout, tmp_path: Path, protocol: str, low: float, high: float) -> None:
    """TCP after tcp_retries2 doublings of its RTO (0.2 s or more), SCTP with the error after association_max_retrans
    (RFC 9260 8.1), the first of which may be timed from just before the fault.
    """
    run = checkout.run_spec(tmp_path, SPEC, "--no-report", "--where", f"protocol={protocol}")
    measured = {row["metric"]: row["value"] for row in run.table("measurements")}
    assert low <= float(measured["gave_up_s"]) <= high
    assert measured["outage_s"] == "", "what never ended has no length"
    assert float(measured["payload_bytes"]) > 0
