"""A cell's TCP metrics: those of analyze_tcp in the flow's window, over all subflows; none for SCTP."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from netwarp.captures import read_captures
from netwarp.captures.tcp import RetransmissionCause, analyze_tcp
from netwarp.core.metrics.catalogue import METRICS
from support.captures import recorded
from support.recorded_cell import T0, derive, make_cell, make_directory

S = 1_000_000_000


@pytest.mark.parametrize("name", ["tcp", "mptcp"])
@pytest.mark.parametrize("stop_ns", [11 * S, 7 * S])
def test_they_are_those_of_the_window(name: str, stop_ns: int, tmp_path: Path) -> None:
    cell = make_cell(name, flow={"stop_ns": stop_ns})
    metrics = derive(cell, make_directory(cell, name, tmp_path / "cell")).metrics
    links = [link.name for link in cell.links]
    capture = read_captures(recorded(name, "a", links), checksums=True)
    rtt: list[int] = []
    why: list[int] = []
    for flow in range(len(capture.flows)):
        one = analyze_tcp(capture, flow, at=0).directions[0]
        assert one.retransmissions is not None
        rtt += one.rtt.rtt_ns[one.rtt.time_ns <= T0 + stop_ns].tolist()
        why += one.retransmissions.cause[
            one.data.time_ns[one.retransmissions.segment] <= T0 + stop_ns
        ].tolist()  # fmt: skip
    rtt.sort()
    assert metrics["rtt_min_s"] == rtt[0] / 1e9
    assert metrics["rtt_median_s"] == rtt[-(-len(rtt) // 2) - 1] / 1e9
    assert metrics["rtt_p95_s"] == rtt[int(np.ceil(0.95 * len(rtt))) - 1] / 1e9
    assert metrics["fast_retransmitted_packets"] == why.count(RetransmissionCause.FAST)
    assert metrics["timeouts"] == why.count(RetransmissionCause.TIMEOUT)
    assert metrics["tail_loss_probes"] == why.count(RetransmissionCause.TAIL_PROBE)
    assert metrics["reordered_packets"] is not None
    if name == "tcp":  # of MPTCP what a subflow repeats is not all of what the connection does
        assert len(why) == metrics["retransmitted_packets"]


def test_none_for_sctp_and_none_without_captures(tmp_path: Path) -> None:
    cell = make_cell("sctp")
    metrics = derive(cell, make_directory(cell, "sctp", tmp_path / "sctp")).metrics
    of_tcp = [name for name, metric in METRICS.items() if metric.flows == "TCP"]
    assert len(of_tcp) == 9 and {metrics[name] for name in of_tcp} == {None}
    cell = make_cell("tcp")
    root = make_directory(cell, "tcp", tmp_path / "tcp")
    (root / "capture" / "a-p1.pcap.zst").unlink()
    metrics = derive(cell, root).metrics
    assert metrics["rtt_min_s"] is metrics["timeouts"] is None
    assert metrics["reordered_packets"] == 0
