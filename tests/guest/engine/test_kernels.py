"""Several kernels in one run, on real guests: Linux 6.1 beside the kernel that runs use.

Skipped where no 6.1 is built: `netwarp kernel build --source linux-source-6.1` takes minutes, and CI does not build it.
"""

from __future__ import annotations

import json
from pathlib import Path

import netwarp
import pytest
from netwarp.core.types import Outcome
from netwarp.guestkernel.cache import find_named
from netwarp.store.run_dir import RunDir
from support.chain_kit import Checkout

OLD = find_named("6.1")
pytestmark = pytest.mark.skipif(
    OLD is None, reason="no Linux 6.1 is built here: netwarp kernel build --source linux-source-6.1"
)
SPEC = """\
format = 1
name = "two-kernels"
duration = "8 s"
[node.a]
[node.b]
[default.link]
between = ["a", "b"]
rate = "2 Mbit/s"
queue = "50 packets"
one_way_delay = "10 ms"
[link.p1]
[link.p2]
[flow.f]
from = "a"
to = "b"
paths = ["p1"]
[event.fault]
action = "cut"
link = "p1"
at = "3 s"
for = "2 s"
[factor.kernel]
levels = ["6.1", "6.12"]
[factor.variant]
levels = ["tcp", "sctp", "mptcp"]
[factor.variant.level.tcp]
flow.f.protocol = "tcp"
[factor.variant.level.sctp]
flow.f = { protocol = "sctp", paths = ["p1", "p2"] }
[factor.variant.level.mptcp]
flow.f = { protocol = "mptcp", paths = ["p1", "p2"] }
[factor.loss]
levels = ["none", "netem", "own"]
only = { variant = ["tcp"] }
[factor.loss.level.netem]
link.p1.loss = "1 %"
[factor.loss.level.own]
link.p1.bit_errors = "1e-6"
"""


@pytest.fixture(scope="module")
def run(checkout: Checkout, tmp_path_factory: pytest.TempPathFactory) -> netwarp.Run:
    folder = tmp_path_factory.mktemp("kernels")
    (folder / "spec.toml").write_text(SPEC)
    return netwarp.run(folder / "spec.toml", out=folder / "run")


def outcomes(run: netwarp.Run) -> dict[tuple[str, ...], Outcome]:
    return {
        tuple(cell.factors.values()): RunDir(run.path).cell(cell.id).read_outcome().outcome for cell in run.plan.cells
    }


def test_every_cell_runs_on_its_kernel_and_says_so(run: netwarp.Run) -> None:
    assert OLD is not None
    found = outcomes(run)
    unsupported = [levels for levels, outcome in found.items() if outcome is not Outcome.COMPLETED]
    assert unsupported == [("6.1", "tcp", "netem")]
    for cell in run.plan.cells:
        if found[tuple(cell.factors.values())] is Outcome.COMPLETED:
            environment = json.loads((run.path / "cells" / cell.id / "environment.json").read_bytes())
            assert environment["kernel"]["kernel"].startswith(f"{cell.factors['kernel']}.")
            assert environment["network"]["netem_seeded"] == (cell.factors["kernel"] != "6.1")
    manifest = json.loads((run.path / "manifest.json").read_bytes())
    assert manifest["kernel_release"].split(", ")[0] == OLD.release
    calibration = json.loads((run.path / "calibration.json").read_bytes())
    assert {row["probe"].split(",")[0] for row in calibration["rows"]} == {
        f"Linux {release}" for release in manifest["kernel_release"].split(", ")
    }
    assert all(row["ok"] for row in calibration["rows"])
    assert "Linux 6.1, 6.12" in (run.path / "report" / "index.html").read_text()


def test_an_old_kernel_repeats_byte_for_byte(run: netwarp.Run, tmp_path: Path) -> None:
    again = netwarp.run(run.path / "spec" / "spec.toml", where={"kernel": "6.1"}, out=tmp_path / "again", report=False)
    compared = netwarp.compare_exactly(run.path, again.path)
    assert compared.count("equal") == len(again.plan.cells) - 1, "but for the one that is UNSUPPORTED"
    assert compared.count("differ") == 0


def test_what_netwarp_draws_is_the_same_on_both(run: netwarp.Run) -> None:
    """Bit errors hit the same packets: as many are lost of the first hundred, and the first one is the same."""
    cells = {tuple(cell.factors.values()): cell for cell in run.plan.cells}
    counts = []
    for kernel in ("6.1", "6.12"):
        cell = cells[kernel, "tcp", "own"]
        environment = json.loads((run.path / "cells" / cell.id / "environment.json").read_bytes())
        counts.append(environment["network"]["packet_programs"])
    assert all(counts)
