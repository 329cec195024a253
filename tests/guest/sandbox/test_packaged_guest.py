"""Cells in guests of the distribution's own kernel, which nobody here built: TCP and SCTP over a path that loses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from netwarp.core.types import Outcome
from netwarp.guestkernel.packaged import BINARY, distribution_kernel
from netwarp.store.run_dir import RunDir
from support.chain_kit import Checkout, written

KERNEL = distribution_kernel()
pytestmark = pytest.mark.skipif(
    KERNEL is None, reason="no user-mode-linux package here: apt-get install user-mode-linux"
)
SPEC = """\
format = 1
name = "packaged"
duration = "40 s"
[node.a]
[node.b]
[link.p1]
between = ["a", "b"]
rate = "4 Mbit/s"
queue = "30 packets"
one_way_delay = "10 ms"
loss = "5 %"
[flow.bulk]
from = "a"
to = "b"
protocol = "{protocol}"
paths = ["p1"]
bytes = "300 kB"
[factor.protocol]
levels = ["tcp", "sctp", "mptcp"]
[factor.protocol.tcp]
flow.bulk.sender = { congestion = "westwood" }
"""
LATE = ("timeline", "start of", "steal time")


def test_tcp_and_sctp_with_loss(checkout: Checkout, tmp_path: Path) -> None:
    assert KERNEL is not None
    spec = written(tmp_path / "spec.toml", SPEC)
    # no kernel of ours anywhere: the back end guest finds the packaged one by itself
    done = checkout.run(
        "run", spec, "--backend", "guest", "--no-report", "--out", tmp_path / "run",
        cwd=tmp_path, NETWARP_KERNEL="", NETWARP_CACHE=str(tmp_path / "cache"),
    )  # fmt: skip
    assert done.status == 1, done
    assert f"cells run on {KERNEL.source} ({KERNEL.release})" in done.err
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert (manifest["backend"], manifest["kernel_release"]) == ("guest", KERNEL.release)
    assert (manifest["kernel_sha256"], manifest["kernel_source"]) == (KERNEL.sha256, KERNEL.source)
    for protocol in ("tcp", "sctp"):
        run = RunDir(tmp_path / "run")
        cell = run.cell(next((tmp_path / "run" / "cells").glob(f"{protocol}_*")).name)
        outcome, environment = cell.read_outcome(), json.loads(cell.environment.read_text())
        late = [check["check"] for check in environment["checks"] if not check["ok"]]
        assert outcome.outcome is (Outcome.INVALID if late else Outcome.COMPLETED), outcome
        assert all(name.startswith(LATE) for name in late), late
        assert environment["kernel"]["kernel"] == KERNEL.release
        summary = json.loads((cell.apps / "bulk.receiver.ndjson").read_text().splitlines()[-1])
        assert (summary["unique_bytes"], summary["corrupt_bytes"]) == (300_000, 0)
        last = environment["network"]["qdiscs"][-3:]
        assert sum(qdisc["dropped_packets"] for entry in last for qdisc in entry["qdiscs"]) > 0, "the path lost some"
    mptcp = RunDir(tmp_path / "run").cell(next((tmp_path / "run" / "cells").glob("mptcp_*")).name).read_outcome()
    assert mptcp.outcome is Outcome.UNSUPPORTED
    assert "has no MPTCP" in mptcp.reason


def test_it_is_no_kernel_for_virtual_time(checkout: Checkout, tmp_path: Path) -> None:
    spec = written(tmp_path / "spec.toml", SPEC)
    done = checkout.run("run", spec, "--backend", "virtual", cwd=tmp_path, NETWARP_KERNEL=str(BINARY))
    assert done.status == 77, done
    assert "has no virtual clock: it can only run --backend guest" in done.err
