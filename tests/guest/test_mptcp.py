"""MPTCP through the whole chain: one cell over one path, its payload verified byte by byte."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from chain_kit import HOSTS, Checkout, all_completed, cells, written
from chain_packets import frames, from_host

MP = 30
"""TCP option kind of Multipath TCP (RFC 8684 section 9)."""
SYN, ACK = 2, 16
BYTES = 700_000

SPEC = (
    HOSTS.format(name="mptcp", duration="20 s")
    + f"""
[link.p1]
between = ["a", "b"]
rate = "2 Mbit/s"
queue = "20 packets"
one_way_delay = "20 ms"
loss = "0.5 %"
[flow.bulk]
from = "a"
to = "b"
protocol = "mptcp"
paths = ["p1"]
bytes = "{BYTES} B"
"""
)


def test_one_cell_over_one_path(checkout: Checkout, tmp_path: Path) -> None:
    spec, run = written(tmp_path / "spec.toml", SPEC), tmp_path / "x"
    checkout.run("run", spec, "--no-report", "--out", run, cwd=tmp_path).ok()
    all_completed(run)
    (cell_id,) = cells(run)
    place = run / "cells" / cell_id

    summary = json.loads((place / "apps" / "bulk.receiver.ndjson").read_text().splitlines()[-1])
    assert summary["record"] == "summary"
    assert summary["unique_bytes"] == BYTES
    assert {summary[key] for key in ("gap_bytes", "corrupt_bytes", "duplicate_bytes", "out_of_order")} == {0}
    checks = {check["check"]: check for check in json.loads((place / "derived" / "checks.json").read_bytes())}
    assert checks["payload bulk"]["ok"]
    assert f"application {BYTES} B, deliverable on the wire {BYTES} B" in checks["payload bulk"]["detail"]
    assert checks["pattern bulk"]["ok"]
    with open(run / "tables" / "measurements.csv", encoding="utf-8", newline="") as file:
        values = {row["metric"]: row["value"] for row in csv.DictReader(file)}
    assert float(values["payload_bytes"]) == BYTES
    assert float(values["retransmitted_packets"]) > 0
    assert 1.5e6 < float(values["goodput_bit_s"]) < 2e6 * 1460 / 1500


def test_it_is_mptcp_and_not_what_it_falls_back_to(checkout: Checkout, tmp_path: Path) -> None:
    """Both SYNs offer it, and every segment with data maps it."""
    spec, run = written(tmp_path / "spec.toml", SPEC), tmp_path / "x"
    checkout.run("run", spec, "--no-report", "--out", run, cwd=tmp_path).ok()
    seen = frames(next(run.glob("cells/*/capture/b-p1.pcap.zst")))
    handshake = [frame for frame in seen if frame.flags & SYN]
    assert {bool(frame.flags & ACK) for frame in handshake} == {False, True}
    assert all(MP in frame.options for frame in handshake)
    data = [frame for frame in from_host("a", seen) if frame.data_bytes]
    assert len(data) > BYTES // 1460
    assert all(MP in frame.options for frame in data)


ABORTED = (
    HOSTS.format(name="mptcp-aborted", duration="4 s")
    + """
[link.fast]
between = ["a", "b"]
rate = "5 Mbit/s"
queue = "400 packets"
one_way_delay = "5 ms"
[link.slow]
between = ["a", "b"]
rate = "2 Mbit/s"
queue = "40 packets"
one_way_delay = "150 ms"
[flow.both]
from = "a"
to = "b"
protocol = "mptcp"
paths = ["fast", "slow"]
stop = "3 s"
"""
)


def test_data_behind_an_abort_on_a_faster_path_are_not_delivered(checkout: Checkout, tmp_path: Path) -> None:
    """MP_FASTCLOSE on the fast path ends the connection while the slow one still carries data (RFC 8684 3.5)."""
    spec, run = written(tmp_path / "spec.toml", ABORTED), tmp_path / "x"
    checkout.run("run", spec, "--no-report", "--out", run, cwd=tmp_path).ok()
    all_completed(run)
    (cell_id,) = cells(run)
    place = run / "cells" / cell_id
    checks = {check["check"]: check for check in json.loads((place / "derived" / "checks.json").read_bytes())}
    summary = json.loads((place / "apps" / "both.receiver.ndjson").read_text().splitlines()[-1])
    assert summary["reason"] == "peer_aborted"
    read, detail = summary["unique_bytes"], checks["payload both"]["detail"]
    assert f"application {read} B, deliverable on the wire {read} B" in detail
    assert int(detail.rsplit("new on the wire ", 1)[1].removesuffix(" B")) > read  # the slow path's came too late
