"""`netwarp clean`: captures of finished runs, files that can be made again, and its refusals."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from netwarp.cli import main
from netwarp.engine.compare import compare_cells
from netwarp.engine.run_directory import Run
from netwarp.store.plan_file import read_plan
from netwarp.store.run_dir import RunDir, locked
from support.report_kit import plan_of, put, spec_text, write_run


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    return write_run(tmp_path / "run", plan_of(spec_text(), tmp_path / "spec"))


def files(run: RunDir) -> dict[str, bytes]:
    return {str(path.relative_to(run.root)): path.read_bytes() for path in run.root.rglob("*") if path.is_file()}


def clean(*arguments: object) -> int:
    return main(["clean", *map(str, arguments)])


def test_captures_go_and_everything_else_stays(run: RunDir, capsys: pytest.CaptureFixture[str]) -> None:
    put(run.cell(min(run.finished())).capture / "b-p1.pcap.zst", bytes(2_000_000))
    before = files(run)
    gone = {name for name in before if "/capture/" in name}
    assert len(gone) == 13
    assert clean("--captures", run.root) == 0
    after = files(run)
    after.pop(".lock")
    assert after == {name: content for name, content in before.items() if name not in gone}
    assert capsys.readouterr().out == f"{run.root}: freed 2.000 MB: 13 captures\n"


def test_a_run_without_captures_is_said_to_have_none(run: RunDir, capsys: pytest.CaptureFixture[str]) -> None:
    assert clean("--captures", run.root) == 0
    capsys.readouterr()
    assert clean("--captures", run.root) == 0
    assert capsys.readouterr().out == f"{run.root}: has no captures\n"


@pytest.mark.parametrize("what", [["--captures"], []])
def test_a_running_one_is_refused(run: RunDir, what: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    before = files(run)
    with locked(run):
        assert clean(*what, run.root) == 1
    after = files(run)
    after.pop(".lock")
    assert after == before
    assert "another netwarp is running in this directory" in capsys.readouterr().err


def test_an_unfinished_one_keeps_its_captures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_run(tmp_path / "run", plan_of(spec_text(), tmp_path / "spec"), missing={0, 1})
    captures = run.captures()
    assert clean("--captures", run.root) == 1
    said = capsys.readouterr().err
    assert "2 of its 12 cells were not run" in said
    assert "--resume" in said
    assert run.captures() == captures


def test_cells_never_analysed_keep_their_captures(run: RunDir, capsys: pytest.CaptureFixture[str]) -> None:
    run.cell(min(run.finished())).checks.unlink()
    captures = run.captures()
    assert clean("--captures", run.root) == 1
    said = capsys.readouterr().err
    assert f"{min(run.finished())} was never analysed" in said
    assert f"netwarp analyze {run.root}" in said
    assert run.captures() == captures


def test_without_captures_nothing_that_was_derived_goes(run: RunDir, capsys: pytest.CaptureFixture[str]) -> None:
    assert clean("--captures", run.root) == 0
    before = files(run)
    assert clean(run.root) == 1
    assert files(run) == before
    assert "cannot be made again" in capsys.readouterr().err


def test_derived_files_go_where_they_can_be_made_again(run: RunDir, capsys: pytest.CaptureFixture[str]) -> None:
    put(run.partial / "half" / "capture" / "a-p1.pcap", b"left by an interrupted run")
    captures = [path for path in run.captures() if ".partial" not in path.parts]
    assert clean(run.root) == 0
    assert not run.partial.exists() and not run.tables.exists()
    assert not any(run.cell(cell_id).derived.exists() for cell_id in run.finished())
    assert run.captures() == captures
    assert capsys.readouterr().out.startswith(f"{run.root}: freed ")


def test_without_a_run_they_are_listed(
    run: RunDir, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "results" / "made-up").mkdir(parents=True)
    Path(os.fspath(run.root)).rename(tmp_path / "results" / "made-up" / "2026")
    (tmp_path / "results" / "made-up" / "latest").symlink_to("2026")
    monkeypatch.chdir(tmp_path)
    there = {path for path in tmp_path.rglob("*") if path.is_file()}
    assert clean("--captures") == 0
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 2, "one run, once, and how to go on"
    assert said[0].startswith("results/made-up/2026: ") and "captures" in said[0]
    assert said[1].startswith("nothing was removed; name the runs: ")
    assert said[1].endswith(" clean --captures RUN_DIR...")
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == there


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert clean("--captures", tmp_path) == 2
    assert "is not a run directory" in capsys.readouterr().err


def test_runs_are_still_equal_by_the_digests_their_analysis_kept(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / name, plan_of(spec_text(), tmp_path / "spec")) for name in ("a", "b")]
    plan = read_plan(runs[0])
    for cell, run in ((cell, run) for cell in plan.cells for run in runs):
        for one in cell.captures:
            put(run.cell(cell.id).capture / f"{one.node}-{one.link}.pcap.zst", b"not a capture")

    def compared() -> tuple[int, int]:
        pairs = list(compare_cells(*(Run(run, plan) for run in runs), words=False))
        return sum(pair.status == "equal" for pair in pairs), len(pairs)

    assert compared() == (12, 12), "by the files"
    assert clean("--captures", runs[0].root) == 0
    assert compared() == (0, 12), "no digest was kept: not known, so not called equal"
    assert clean("--captures", runs[1].root) == 0
    for run in runs:
        for cell_id in run.finished():
            put(run.cell(cell_id).packets, {"a-p1": "1" * 64})
    put(runs[1].cell(plan.cells[0].id).packets, {"a-p1": "2" * 64})
    assert compared() == (11, 12)
