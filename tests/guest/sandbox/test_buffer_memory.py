"""The memory for hosts' buffers in one guest; a cell that needs more is INVALID."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.chain_kit import Checkout, written
from support.run_files import load_run

SPEC = """\
format = 1
name = "memory"
duration = "2 s"
[node.a]
[node.b]
[link]
p1 = { between = ["a", "b"], rate = "1 Mbit/s", queue = "20 packets", one_way_delay = "10 ms" }
[default.flow]
from = "a"
to = "b"
protocol = "tcp"
paths = ["p1"]
message_size = "64 KiB"
sender = { sndbuf = "8 MB" }
"""


@pytest.mark.parametrize(("flows", "outcome"), [(2, "COMPLETED"), (10, "INVALID")])
def test_a_kernel_under_memory_pressure_is_never_silent(
    flows: int, outcome: str, checkout: Checkout, tmp_path: Path
) -> None:
    """Two senders of 8 MB (the kernel's account: 16 MB each) fit; ten are more than the guest has for buffers."""
    spec = written(tmp_path / "spec.toml", SPEC + "".join(f"[flow.f{number}]\n" for number in range(flows)))
    out = tmp_path / "run"
    done = checkout.run("run", spec, "--out", out, "--no-report", cwd=tmp_path)
    (cell,) = load_run(out).table("cells")
    assert cell["outcome"] == outcome, done
    assert done.status == (0 if outcome == "COMPLETED" else 1)
    assert (outcome == "INVALID") == ("ran short of it in a" in cell["reason"])
