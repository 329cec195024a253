"""The records of each kernel where cells are exact: the tables of the READMEs, what differs, golden captures."""

from __future__ import annotations

import sys
from pathlib import Path

import golden
import pytest
from netwarp.engine.planning import load_experiment
from netwarp.engine.run_directory import open_run
from support.checkout import ROOT
from support.report_kit import large_run, put

KEPT = [(name, kept) for name in golden.NAMES for kept in golden.kernels(name)]
of_each = pytest.mark.parametrize("name", golden.NAMES)


def generated(page: str) -> str:
    return (ROOT / page).read_text().split(golden.BEGIN)[1].split(golden.END)[0].strip()


@of_each
def test_the_table_is_that_of_the_kernels(name: str) -> None:
    """`.venv/bin/python experiments/golden.py` writes it again."""
    assert generated(f"experiments/{name}/README.md") == golden.table(name)


def test_the_page_counts_them() -> None:
    assert generated("docs/referee.md") == golden.counts()


@of_each
def test_every_difference_is_explained_and_nothing_else(name: str) -> None:
    claims = [item for kept in golden.kernels(name) for item in kept["claims"].items()]
    assert {claim for claim, row in claims if row["verdict"] != "holds"} == golden.differences(name).keys()


@pytest.mark.parametrize(("name", "kept"), KEPT, ids=[f"{name} {kept['release']}" for name, kept in KEPT])
def test_what_is_kept_is_of_the_claims_of_today(name: str, kept: golden.Kept) -> None:
    """Each of them was judged, there or on a kernel that was built for it, and none of the past stands there."""
    built = golden.of_built_kernels(name)
    judged = {claim.partition(" ")[0] for claim in kept["claims"]}
    assert judged.isdisjoint(built)
    assert judged | built.keys() == {claim.id for claim in load_experiment(name).claims}
    assert all(row["verdict"] in ("holds", "does not hold") for row in (kept["claims"] | built).values())


def test_another_capture_and_an_unknown_cell_are_named() -> None:
    kept = golden.kernels("recovery")[0]
    cells = list(kept["captures"])[:2]
    did = {**kept, "captures": {cells[0]: kept["captures"][cells[0]], cells[1]: "0" * 16, "tcp: other": "1" * 16}}
    assert golden.differing(did) == [cells[1], "tcp: other"]
    assert golden.differing({**did, "kernel_sha256": "0" * 64}) is None


def test_a_statement_that_another_kernel_is_judged_otherwise_on_is_named() -> None:
    kept = golden.kernels("recovery")[-1]
    changed = {**kept["claims"]["TLP-5"], "verdict": "does not hold", "measured": "1.0"}
    before = golden.disagreements(kept)
    now = golden.disagreements({**kept, "claims": {**kept["claims"], "TLP-5": changed}})
    (line,) = [line for line in now if line not in before]
    assert line.startswith("TLP-5: does not hold (1); Linux ") and "holds (0)" in line


@of_each
def test_a_patched_kernel_is_compared_with_its_base_alone(name: str) -> None:
    """A harmless patch has no difference, whatever other releases do."""
    for kept in golden.kernels(name):
        patched = {**kept, "kernel_sha256": "0" * 64}
        assert golden.base_of(kept) is None and golden.base_of(patched) == kept
        assert golden.label(patched) != golden.label(kept)
        assert not golden.disagreements(patched)
        claim = next(iter(kept["claims"]))
        other = {"holds": "does not hold", "does not hold": "holds"}[kept["claims"][claim]["verdict"]]
        broken = {**patched, "claims": {**kept["claims"], claim: {**kept["claims"][claim], "verdict": other}}}
        (line,) = golden.disagreements(broken)
        assert line.startswith(f"{claim}: {other}") and line.count("Linux") == 1 and kept["release"] in line


def test_nothing_is_kept_of_a_run_with_a_failed_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its statements are not judged, so that the verdicts of an earlier run would stand for it."""
    run = open_run(large_run(tmp_path / "run", 60).root)
    [failed] = [cell for cell in run.plan.cells if not run.results.completed(cell.id)]
    for cell in run.plan.cells:
        if cell is not failed:
            put(run.directory.cell(cell.id).packets, {"a-p1": cell.id})
    monkeypatch.setattr(golden, "HERE", tmp_path)
    monkeypatch.setattr(sys, "argv", ["golden.py", "keep", str(run.path)])
    assert golden.main() == 1
    [_, said] = capsys.readouterr().out.splitlines()
    assert said.startswith(f"{golden.named(failed)}: FAILED, ")
    assert not list(tmp_path.glob("*/kernels"))
    did = golden.what_it_did(run.path)
    assert [cell for cell, digest in did["captures"].items() if not digest] == [golden.named(failed)]
