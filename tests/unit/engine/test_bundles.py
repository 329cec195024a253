"""Bundles of runs: hostile ones are refused, and those of the reference results are whole."""

from __future__ import annotations

import csv
import dataclasses
import io
import tarfile
from pathlib import Path

import netwarp
import papers
import pytest
import reference
from msgspec.structs import replace
from netwarp.core.errors import SpecError, StoreError
from netwarp.core.outputs import Claim, Sentence
from netwarp.core.types import Outcome
from netwarp.engine.bundles import bundle, opened
from netwarp.engine.planning import load_experiment
from netwarp.engine.run_directory import open_run
from netwarp.store.packing import pack_run
from netwarp.store.packs import archives
from support.checkout import ROOT
from support.report_kit import large_run, plan_of, put, spec_text, write_run

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


def test_a_packed_run_gives_the_same_bundle(tmp_path: Path) -> None:
    run = large_run(tmp_path / "run", 240)
    for cell_id in run.finished():
        put(run.cell(cell_id).packets, {"a-p1": "0" * 64})
    loose = bundle(run.root, tmp_path / "loose.tar.xz").read_bytes()
    pack_run(run)
    assert archives(run.cells)
    assert bundle(run.root, tmp_path / "packed.tar.xz").read_bytes() == loose
    with opened(tmp_path / "packed.tar.xz") as place:
        assert len(open_run(place).directory.finished()) == len(run.finished()) > 0


def test_a_reference_stays_if_the_next_one_cannot_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bundle of a run that was never analysed cannot be made."""
    monkeypatch.setattr(reference, "REFERENCE", tmp_path / "reference")
    run = large_run(tmp_path / "run", 240)
    place = tmp_path / "reference" / open_run(run.root).plan.name
    place.mkdir(parents=True)
    (place / "made.json").write_text("old")
    with pytest.raises(SpecError, match="was never analysed"):
        reference.keep(run.root)
    assert [path.name for path in place.parent.iterdir()] == [place.name]
    assert (place / "made.json").read_text() == "old"
    for cell_id in run.finished():
        put(run.cell(cell_id).packets, {"a-p1": "0" * 64})
    reference.keep(run.root)
    assert [path.name for path in place.parent.iterdir()] == [place.name]
    assert (place / "run.tar.xz").exists() and "kernel" in (place / "made.json").read_text()


@pytest.mark.parametrize("name", KEPT)
def test_the_numbers_of_a_readme_are_those_of_the_reference(name: str) -> None:
    """`.venv/bin/python experiments/reference.py` writes them again."""
    text = (ROOT / "experiments" / name / "README.md").read_text()
    assert text.count(reference.BEGIN) == text.count(reference.END) == 1
    there = text.split(reference.BEGIN)[1].split(reference.END)[0].strip()
    assert there == reference.numbers(name)


def test_the_verdicts_of_the_papers_are_those_of_the_references() -> None:
    text = (ROOT / "docs" / "verdicts.md").read_text()
    assert text.split(reference.BEGIN)[1].split(reference.END)[0].strip() == reference.verdicts_page()


@pytest.mark.parametrize("name", [*KEPT, "agreement", "android", "kernels", "physics", "schedules"])
def test_no_result_is_typed_into_prose(name: str) -> None:
    """A number of answer.md, the summary and a README's own text is a condition or the paper's."""
    assert reference.typed(name) == []


def test_a_typed_result_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Not a level of the experiment, nor what is rendered."""
    text = f"At 20 % loss it is +12.3 % or 3.7 times, {{C16.measured}}.\n{reference.BEGIN}\n99.9 %\n{reference.END}\n"
    spec = dataclasses.replace(load_experiment("min2013"), folder=tmp_path)
    (tmp_path / "README.md").write_text(text)
    monkeypatch.setattr(reference, "load_spec", lambda _: spec)
    assert reference.typed("min2013") == ["+12.3 %", "3.7 times"]


def test_a_number_stands_under_the_claim_it_was_measured_for() -> None:
    """In today's words, unless a claim of the same id has another rule today."""
    then = Claim("C1", "old words", "a paper", "less", metric="object_wait_s", a=({"who": ("a",)},))
    words = replace(then, text="new words", sentence=Sentence("", "words"))
    assert reference.claims_of([words], [then]) == {"C1": words}
    for other in (replace(words, metric="object_wait_factor"), replace(words, kind="value"), replace(words, a=())):
        assert reference.claims_of([other], [then]) == {"C1": then}
    assert reference.claims_of([], [then]) == {"C1": then}, "it is gone today"
    for name in KEPT:
        claims = reference._kept_files(name)[0].claims
        assert {row["claim"] for row in reference._rows(reference.REFERENCE / name / "claims.csv")} <= {
            claim.id for claim in claims
        }


def test_the_page_over_the_papers_has_every_conclusion(tmp_path: Path) -> None:
    page = papers.page(tmp_path)
    for name in KEPT:
        rows = csv.DictReader((ROOT / "results" / "reference" / name / "claims.csv").read_text().splitlines())
        for row in rows:
            assert row["class"] not in ("conclusion", "cause") or f"<tr><th>{row['claim']} " in page


@pytest.mark.parametrize("name", KEPT)
def test_a_reference_has_the_hash_of_every_capture(name: str) -> None:
    with opened(ROOT / "results" / "reference" / name / "run.tar.xz") as place:
        run = open_run(place)
        assert run.plan.name == name
        assert run.manifest.backend == "virtual"
        for cell in run.plan.cells:
            place = run.directory.cell(cell.id)
            assert place.packets.exists() or place.read_outcome().outcome is Outcome.FAILED, cell.id


def test_the_report_of_a_bundle_has_the_measurements(tmp_path: Path) -> None:
    """A bundle has each cell's own, not the table that is made of them."""
    plan = plan_of(spec_text(loss="1 %"), tmp_path / "spec", repetitions=3)
    run = write_run(tmp_path / "run", plan)
    for cell in plan.cells:
        put(run.cell(cell.id).packets, {"a-p1.pcap": "0" * 64})
    file = bundle(run.root, tmp_path / "run.tar.xz")
    with opened(file) as place:
        assert not (place / "tables" / "measurements.csv").exists()
        page = netwarp.report(place).read_text()
        assert (place / "tables" / "measurements.csv").read_bytes() == (run.tables / "measurements.csv").read_bytes()
    assert "no two completed" not in page
    with pytest.raises(StoreError, match=r"is a file, .*mkdir DIR && tar xf"):
        netwarp.report(file)
    with pytest.raises(StoreError, match="there is no such directory"):
        netwarp.report(tmp_path / "nothing")
