"""Cells in guests of the distribution's own kernel: TCP and SCTP over a path that loses packets."""

from __future__ import annotations

from pathlib import Path

import pytest
from netwarp.core.types import Outcome
from netwarp.guestkernel.packaged import BINARY, distribution_kernel
from support.chain_kit import Checkout, two_hosts, written
from support.run_files import load_run

KERNEL = distribution_kernel()
pytestmark = pytest.mark.skipif(
    KERNEL is None, reason="no user-mode-linux package here: apt-get install user-mode-linux"
)
SPEC = two_hosts(
    '[factor.protocol]\nlevels = ["tcp", "sctp", "mptcp"]',
    '[factor.protocol.level.tcp]\nflow.bulk.sender = { congestion = "westwood" }',
    name="packaged",
    duration="40 s",
    rate="4 Mbit/s",
    queue="30 packets",
    delay="10 ms",
    link='loss = "5 %"',
    flow='protocol = "{protocol}"\nbytes = "300 kB"',
)


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
    run = load_run(tmp_path / "run")
    manifest = run.manifest
    assert (manifest["backend"], manifest["kernel_release"]) == ("guest", KERNEL.release)
    assert (manifest["kernel_sha256"], manifest["kernel_source"]) == (KERNEL.sha256, KERNEL.source)
    for protocol in ("tcp", "sctp"):
        cell = run.cell(protocol=protocol)
        environment = cell.environment
        late = cell.late()
        assert environment["kernel"]["kernel"] == KERNEL.release
        if late:
            continue
        summary = cell.summary("bulk.receiver")
        assert (summary["unique_bytes"], summary["corrupt_bytes"]) == (300_000, 0)
        last = environment["network"]["qdiscs"][-3:]
        assert sum(qdisc["dropped_packets"] for entry in last for qdisc in entry["qdiscs"]) > 0, "the path lost some"
    mptcp = run.cell(protocol="mptcp").outcome
    assert mptcp.outcome is Outcome.UNSUPPORTED
    assert "has no MPTCP" in mptcp.reason


def test_the_packaged_kernel_is_refused_for_virtual_time(checkout: Checkout, tmp_path: Path) -> None:
    spec = written(tmp_path / "spec.toml", SPEC)
    done = checkout.run("run", spec, "--backend", "virtual", cwd=tmp_path, NETWARP_KERNEL=str(BINARY))
    assert done.status == 77, done
    assert "has no virtual clock: it can only run --backend guest" in done.err
