"""`netwarp compare` on two real runs."""

from __future__ import annotations

import json
from pathlib import Path

from support.chain_kit import Checkout, two_paths, written
from support.run_files import rows


def test_a_run_again_and_with_another_setting(checkout: Checkout, tmp_path: Path) -> None:
    spec = written(tmp_path / "spec.toml", two_paths(duration="2 s"))
    for name, more in (("a", ()), ("b", ()), ("c", ("--set", "link.p1.rate=1 Mbit/s"))):
        checkout.run("run", spec, "--no-report", "--repetitions", 4, *more, "--out", tmp_path / name, cwd=tmp_path).ok()
    same = checkout.run("compare", tmp_path / "a", tmp_path / "b", "--exit-code", cwd=tmp_path).ok().out
    assert "Made alike" in same
    assert "captures are equal byte for byte in 8." in same
    assert "Nothing changed beyond noise." in same
    table = tmp_path / "numbers.csv"
    other = checkout.run(
        "compare", tmp_path / "a", tmp_path / "c", "--json", "--exit-code", "--csv", table, cwd=tmp_path
    )
    assert other.status == 1
    found = json.loads(other.out)
    assert found["differs"]
    assert found["made"] == [{"name": "--set", "a": "-", "b": "link.p1.rate=1 Mbit/s"}]
    assert found["cells"] == {"same_id": 0, "same_captures": 0, "without_captures": 0}
    numbers = rows(table)
    tcp = next(row for row in numbers if (row["protocol"], row["metric"]) == ("tcp", "throughput_bit_s"))
    assert tcp["status"] == "changed"
    assert -0.6 < float(tcp["relative"]) < -0.3, "half the rate"


def test_mistakes(checkout: Checkout, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    wrong = checkout.run("compare", tmp_path / "empty", tmp_path / "nowhere", cwd=tmp_path)
    assert wrong.status != 0
    assert "plan.json: missing; is this a netwarp run directory" in wrong.err
