"""MPTCP in whole runs: payload verified byte by byte, subflows, aborts, lost ADD_ADDR and MP_JOIN."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.chain_kit import Checkout, two_hosts, written
from support.chain_packets import frames, from_host
from support.run_files import load_run

MP = 30
"""TCP option kind of Multipath TCP (RFC 8684 section 9)."""
SYN, ACK = 2, 16
BYTES = 700_000

MPTCP_BYTES = f'protocol = "mptcp"\nbytes = "{BYTES} B"'
SPEC = two_hosts(name="mptcp", duration="20 s", link='loss = "0.5 %"', flow=MPTCP_BYTES)


def test_one_cell_over_one_path(checkout: Checkout, tmp_path: Path) -> None:
    run = checkout.run_spec(tmp_path, SPEC, "--no-report")
    cell = run.cell()
    summary = cell.summary("bulk.receiver")
    assert summary["unique_bytes"] == BYTES
    assert {summary[key] for key in ("gap_bytes", "corrupt_bytes", "duplicate_bytes", "out_of_order")} == {0}
    checks = cell.checks
    assert checks["payload bulk"]["ok"]
    assert f"application {BYTES} B, deliverable on the wire {BYTES} B" in checks["payload bulk"]["detail"]
    assert checks["pattern bulk"]["ok"]
    values = run.metrics()
    assert values["payload_bytes"] == BYTES
    assert values["retransmitted_packets"] > 0
    assert 1.5e6 < values["goodput_bit_s"] < 2e6 * 1460 / 1500


def test_the_connection_is_mptcp_without_fallback(checkout: Checkout, tmp_path: Path) -> None:
    """Both SYNs offer it, and every segment with data maps it."""
    (capture,) = checkout.run_spec(tmp_path, SPEC, "--no-report").cell().captures("b")
    seen = frames(capture)
    handshake = [frame for frame in seen if frame.flags & SYN]
    assert {bool(frame.flags & ACK) for frame in handshake} == {False, True}
    assert all(MP in frame.options for frame in handshake)
    data = [frame for frame in from_host("a", seen) if frame.data_bytes]
    assert len(data) > BYTES // 1460
    assert all(MP in frame.options for frame in data)


BESIDE_OTHERS = """
format = 1
name = "mptcp-aborted"
title = "MPTCP over a bottleneck shared with SCTP and TCP, and over a satellite"
duration = "12 s"
seed = 42
[node.a]
[node.b]
[node.c]
[node.r]
kind = "router"
[link]
acca = { between = ["a", "r"], rate = "100 Mbit/s", queue = "100 packets", one_way_delay = "0.1 ms" }
accc = { like = "acca", between = ["c", "r"] }
[link.terr]
between = ["r", "b"]
rate = "5 Mbit/s"
queue = "1 bdp"
forward = { one_way_delay = "20 ms" }
backward = { one_way_delay = "5 ms" }
[link.sat]
between = ["a", "b"]
profile = "geo-satellite"
[flow.sctp]
from = "a"
to = "b"
protocol = "sctp"
paths = [{ sender = "acca", receiver = "terr" }, "sat"]
[flow.sctp.sender]
path_max_retrans = 2
pf_retrans = 0
rto_min = "300 ms"
rto_initial = "1 s"
rto_max = "5 s"
heartbeat_interval = "2 s"
[flow.tcp]
from = "c"
to = "b"
protocol = "tcp"
paths = [{ sender = "accc", receiver = "terr" }]
sender = { congestion = "cubic" }
[flow.mptcp]
from = "a"
to = "b"
protocol = "mptcp"
paths = [{ sender = "acca", receiver = "terr" }, "sat"]
[event]
down = { action = "link", link = "terr", end = "r", at = "4 s", for = "2 s" }
[factor.length]
levels = ["9.2 s", "9.7 s", "10.2 s", "10.7 s", "11.2 s", "11.7 s"]
[factor.length.level."9.2 s"]
duration = "9.2 s"
[factor.length.level."9.7 s"]
duration = "9.7 s"
[factor.length.level."10.2 s"]
duration = "10.2 s"
[factor.length.level."10.7 s"]
duration = "10.7 s"
[factor.length.level."11.2 s"]
duration = "11.2 s"
[factor.length.level."11.7 s"]
duration = "11.7 s"
"""


def test_an_abort_while_a_slow_path_still_carries_data(checkout: Checkout, tmp_path: Path) -> None:
    """The abort comes on the fast path and ends the connection, at six moments: data wait behind a hole on their own
    subflow, or behind one of the data level, or arrive in order on the satellite when the connection is no more. Which
    of them a moment meets depends on the guest kernel; that most meet one, not.
    """
    not_read = {}
    for cell_id, cell in checkout.run_spec(tmp_path, BESIDE_OTHERS, "--no-report").cells.items():
        summary = cell.summary("mptcp.receiver")
        assert summary["reason"] == "peer_aborted"
        detail, read = cell.checks["payload mptcp"]["detail"], summary["unique_bytes"]
        assert f"application {read} B, deliverable on the wire {read} B" in detail
        not_read[cell_id] = int(detail.rsplit("new on the wire ", 1)[1].removesuffix(" B")) - read
    assert sum(late > 0 for late in not_read.values()) >= 4, not_read


ADD_ADDR_LOST = """
[event]
gone = { action = "blackhole", link = "p1", directions = ["backward"], at = "50 ms", for = "30 ms" }
"""
"""SYN, SYN+ACK and ACK take 60 ms; ADD_ADDR leaves the receiver then."""
JOIN_LOST = """
[event]
gone = {{ action = "blackhole", link = "p2", at = "0 s", for = "{length}" }}
"""
CUT = """
[event.gone]
action = "blackhole"
link = "p2"
at = "5 s"
"""


def subflows(checkout: Checkout, place: Path, event: str) -> tuple[dict[str, float | None], list[str], str]:
    """(measurements, what the cell's page says of its subflows, the summary) of one cell over two paths."""
    flow = 'protocol = "mptcp"\npaths = ["p1", "p2"]\nstop = "15 s"'
    spec = written(place / "spec.toml", two_hosts(event, name="mptcp", duration="20 s", links=2, flow=flow))
    said = checkout.run("run", spec, "--no-report", "--out", place / "run", cwd=place).ok().out
    run = load_run(place / "run").completed()
    values = {row["metric"]: float(row["value"]) if row["value"] else None for row in run.table("measurements")}
    texts = [
        event["text"]
        for event in run.cell().read("derived/series.json")["events"]
        if re.match("subflow|paths", event["kind"])
    ]
    return values, texts, said


def test_all_paths_in_use(checkout: Checkout, tmp_path: Path) -> None:
    values, texts, said = subflows(checkout, tmp_path, "")
    counts = [values[name] for name in ("subflows_opened", "subflows_joined", "subflows_lost", "paths_used")]
    assert counts == [2, 1, 0, 2]
    # three round trips of 40 ms: the first handshake, ADD_ADDR with its answer, MP_JOIN up to the fourth packet
    assert values["subflow_first_join_time_s"] == values["subflow_last_join_time_s"]
    assert values["subflow_first_join_time_s"] == pytest.approx(0.16, abs=0.03)
    assert texts == ["subflow on p2 joined"]
    assert "had no subflow" not in said


def test_a_lost_add_addr_leaves_one_path_and_is_reported(checkout: Checkout, tmp_path: Path) -> None:
    values, texts, said = subflows(checkout, tmp_path, ADD_ADDR_LOST)
    counts = [values[name] for name in ("subflows_opened", "subflows_joined", "subflows_lost", "paths_used")]
    assert counts == [1, 0, 0, 1]
    assert values["subflow_first_join_time_s"] is None
    (text,) = texts
    assert text.startswith("1 of 2 paths used, no subflow on p2; the ADD_ADDR of 10.0.1.129, sent at 0.0")
    assert text.endswith("s, did not arrive")
    assert 'note: flow "bulk" had no subflow on some of its paths in 1 of 1 cell' in said


def test_a_join_that_is_lost_is_asked_again(checkout: Checkout, tmp_path: Path) -> None:
    """The SYN is sent again after one second, and after one more (net.ipv4.tcp_syn_linear_timeouts is 4)."""
    values, _, _ = subflows(checkout, tmp_path, JOIN_LOST.format(length="2 s"))
    assert (values["subflows_opened"], values["subflows_joined"], values["paths_used"]) == (2, 1, 2)
    assert values["subflow_first_join_time_s"] == pytest.approx(2.2, abs=0.2)


def test_a_join_that_never_arrives_is_reported(checkout: Checkout, tmp_path: Path) -> None:
    values, texts, _ = subflows(checkout, tmp_path, JOIN_LOST.format(length="19 s"))
    assert (values["subflows_opened"], values["subflows_joined"], values["paths_used"]) == (2, 0, 1)
    (text,) = texts
    assert re.fullmatch(
        r"1 of 2 paths used, no subflow on p2; MP_JOIN on p2 was asked for \d times and not completed", text
    )


def test_a_subflow_whose_path_dies_is_lost_when_it_was_last_heard(checkout: Checkout, tmp_path: Path) -> None:
    values, texts, _ = subflows(checkout, tmp_path, CUT)
    assert (values["subflows_joined"], values["subflows_lost"], values["paths_used"]) == (1, 1, 2)
    assert values["subflow_first_loss_time_s"] == pytest.approx(5.1, abs=0.25)
    assert texts == ["subflow on p2 joined", "subflow on p2 lost"]
