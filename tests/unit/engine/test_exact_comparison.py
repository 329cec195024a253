"""Two runs that must be equal: cells matched by what they run, captures by hash, measurements and tables by content."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import zstandard
from netwarp.cli import main
from netwarp.core.frozen import to_json
from netwarp.core.types import Measurement
from netwarp.engine.compare import content, matched
from netwarp.store.run_dir import RunDir, read_json
from support.report_kit import plan_of, put, spec_text, write_run


@pytest.fixture
def runs(tmp_path: Path) -> tuple[RunDir, RunDir]:
    """The same run twice."""
    plan = plan_of(spec_text(), tmp_path / "spec")
    return write_run(tmp_path / "a", plan), write_run(tmp_path / "b", plan)


def exact(runs: tuple[RunDir, RunDir], capsys: pytest.CaptureFixture[str], *more: str) -> tuple[int, list[str]]:
    status = main(["compare", "--exact", *(str(run.root) for run in runs), *more])
    return status, capsys.readouterr().out.splitlines()


def test_equal_runs(runs: tuple[RunDir, RunDir], capsys: pytest.CaptureFixture[str]) -> None:
    assert exact(runs, capsys) == (0, ["12 of 12 cells have equal captures", "the same"])


def test_cells_of_other_names_are_matched_by_what_they_run(
    runs: tuple[RunDir, RunDir], capsys: pytest.CaptureFixture[str]
) -> None:
    """Run B has another name for a cell, on disk and in its tables, and says defaults that run A leaves out."""
    b, old = runs[1], min(runs[1].finished())
    new = f"another_r0_{'0' * 10}"
    cell = json.loads(b.cell(old).cell.read_bytes())
    b.cell(old).cell.write_text(json.dumps({**cell, "experiment": "renamed", "new": {"nothing": None, "no": []}}))
    (b.cells / old).rename(b.cells / new)
    for table in b.tables.iterdir():
        table.write_text(table.read_text().replace(old, new))
    assert exact(runs, capsys) == (0, ["12 of 12 cells have equal captures", "the same"])
    b.cell(new).cell.write_text(json.dumps({**cell, "seed": cell["seed"] + 1}))
    status, lines = exact(runs, capsys, "--no-tables")
    assert status == 1
    assert lines == [
        f"{old}: is in one of the runs only", f"{new}: is in one of the runs only",
        "11 of 13 cells have equal captures", "2 differences",
    ]  # fmt: skip


def test_one_packet_one_measurement_and_one_row(
    runs: tuple[RunDir, RunDir], capsys: pytest.CaptureFixture[str]
) -> None:
    b, name = runs[1], min(runs[1].finished())
    capture = next(b.cell(name).capture.iterdir())
    capture.write_bytes(zstandard.compress(b"another"))
    rows = read_json(b.cell(name).measurements, list[Measurement])
    put(b.cell(name).measurements, [*rows[1:], Measurement(name, "ftp", "one_more", 1.0, "s")])
    table = b.tables / "cells.csv"
    table.write_text(table.read_text().replace("COMPLETED", "INVALID", 1))
    status, lines = exact(runs, capsys)
    assert status == 1
    captures, measurements, rows_of_table, count, total = lines
    assert captures.startswith(f"{name}: capture {capture.name.removesuffix('.pcap.zst')}: ")
    assert measurements.startswith(f"{name}: 1 measurements of A are not in B, such as ('ftp', ")
    assert rows_of_table.startswith("tables/cells.csv: 1 rows of A are not in B, 1 of B not in A: ")
    assert (count, total) == ("11 of 12 cells have equal captures", "3 differences")


def test_a_renamed_metric_and_column(runs: tuple[RunDir, RunDir], capsys: pytest.CaptureFixture[str]) -> None:
    a, b = runs
    for name in b.finished():
        rows = [json.loads(to_json(row)) for row in read_json(b.cell(name).measurements, list[Measurement])]
        put(b.cell(name).measurements, [row | {"metric": row["metric"].replace("goodput", "new")} for row in rows])
    for table in b.tables.iterdir():
        table.write_text(table.read_text().replace("goodput_bit_s", "new_bit_s").replace("virtual_s", "own_s"))
    assert exact(runs, capsys)[0] == 1
    renamed = ("--renamed", "goodput_bit_s=new_bit_s", "--renamed", "virtual_s=own_s")
    assert exact(runs, capsys, *renamed) == (0, ["12 of 12 cells have equal captures", "the same"])
    assert main(["compare", str(a.root), str(b.root), *renamed]) == 2, "an option of --exact alone"


def test_cells_are_matched_one_to_one() -> None:
    """Of cells that run the same those of equal ids belong together, then one each."""
    same, other = b'{"seed": 1, "factors": {"x": "1"}}', b'{"seed": 1, "factors": {"y": "1"}, "left": null}'
    assert content(same) == content(other) != content(b'{"seed": 2}')
    assert content(b'{"seed": 0}') != content(b"{}"), "0 is a value"
    pairs = list(matched({"p": same, "q": same, "r": same}, {"q": other, "s": other}))
    assert pairs == [("p", "s"), ("q", "q"), ("r", None)]
    assert list(matched({}, {"s": same})) == [(None, "s")]
