"""Bundles of runs: hostile ones are refused, and those of the reference results are whole."""

from __future__ import annotations

import csv
import io
import sys
import tarfile
from pathlib import Path

import pytest
from netwarp.core.errors import StoreError
from netwarp.engine.bundles import opened
from netwarp.engine.planning import load_experiment
from netwarp.engine.run_directory import open_run
from netwarp.plan import make_plan
from netwarp.results import Results, write_tables
from support.checkout import ROOT

sys.path.insert(0, str(ROOT / "experiments"))
import papers
import reference

KEPT = sorted(path.name for path in (ROOT / "results" / "reference").iterdir())


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE])
def test_what_is_no_file_is_refused(tmp_path: Path, kind: bytes) -> None:
    path = tmp_path / "x.tar.xz"
    with tarfile.open(path, "w:xz") as archive:
        entry = tarfile.TarInfo("plan.json")
        entry.type, entry.linkname = kind, "/etc/passwd"
        archive.addfile(entry)
    with pytest.raises(StoreError, match="is no bundle of a run"), opened(path):
        pass


def test_nothing_is_written_outside_of_its_place(tmp_path: Path) -> None:
    path = tmp_path / "x.tar.xz"
    with tarfile.open(path, "w:xz") as archive:
        entry = tarfile.TarInfo("../outside")
        entry.size = 1
        archive.addfile(entry, io.BytesIO(b"x"))
    with pytest.raises(StoreError, match="is no bundle of a run"), opened(path):
        pass
    assert [one.name for one in tmp_path.iterdir()] == ["x.tar.xz"]


def test_a_damaged_one_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.tar.xz"
    path.write_bytes((ROOT / "results" / "reference" / KEPT[0] / "run.tar.xz").read_bytes()[:5000])
    with pytest.raises(StoreError, match=r"x\.tar\.xz: is no bundle that can be read"), opened(path):
        pass


@pytest.mark.parametrize("name", KEPT)
def test_the_numbers_of_a_readme_are_those_of_the_reference(name: str) -> None:
    """`.venv/bin/python experiments/reference.py` writes them again."""
    text = (ROOT / "experiments" / name / "README.md").read_text()
    assert text.count(reference.BEGIN) == text.count(reference.END) == 1
    there = text.split(reference.BEGIN)[1].split(reference.END)[0].strip()
    assert there == reference.numbers(name)


def test_the_page_over_the_papers_has_every_conclusion(tmp_path: Path) -> None:
    page = papers.page(tmp_path)
    for name in KEPT:
        rows = csv.DictReader((ROOT / "results" / "reference" / name / "claims.csv").read_text().splitlines())
        for row in rows:
            assert row["class"] not in ("conclusion", "cause") or f"<li>{row['claim']} " in page


@pytest.mark.parametrize("name", ["lee2008"])
def test_a_paper_that_joins_is_on_the_page(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Claims that nothing was measured of: its sources' numbers and every conclusion are there all the same."""
    plan = make_plan(load_experiment(name))
    write_tables(Results(plan, {}, ()), tmp_path / name)
    monkeypatch.setattr(reference, "REFERENCE", tmp_path)
    page = papers.page(tmp_path / "no runs")
    with (tmp_path / name / "claims.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["class"] in ("conclusion", "cause") and not row["condition"]]
    assert len(rows) > 5
    assert [row["claim"] for row in rows if f"<li>{row['claim']} " not in page] == []
    assert f"<h2>{name}: " in page and "(reference results)" in page


@pytest.mark.parametrize("name", KEPT)
def test_a_reference_has_the_hash_of_every_capture(name: str) -> None:
    with opened(ROOT / "results" / "reference" / name / "run.tar.xz") as place:
        run = open_run(place)
        assert run.plan.name == name
        assert run.manifest.backend == "virtual"
        for cell in run.plan.cells:
            assert run.directory.cell(cell.id).packets.exists(), cell.id
