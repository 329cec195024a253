"""Packed cells: they open cell by cell, a kill at any step loses none, and unpacking restores every file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from netwarp.core.errors import StoreError
from netwarp.core.inside import InsidePath
from netwarp.core.types import CellOutcome, Check, Outcome
from netwarp.store import compressed, packing, packs
from netwarp.store.packing import Combiner, combine, opened, pack_one, pack_run, unpack_run
from netwarp.store.run_dir import Judgement, RunDir, read_json, write_json, write_packed_json

COMPLETED = CellOutcome(Outcome.COMPLETED, "", 1.0, 0.1)


def make_cell(run: RunDir, cell_id: str, outcome: CellOutcome = COMPLETED) -> None:
    cell = run.cell(cell_id)
    write_json(cell.outcome, outcome)
    write_json(cell.checks, [Check("x", True, cell_id)])
    write_json(cell.judgement, Judgement(outcome.outcome, ""))
    write_packed_json(cell.series, {"cell": cell_id})
    cell.apps.mkdir()
    (cell.capture / "a").parent.mkdir()
    (cell.capture / "a-p1.pcap.zst").write_bytes(cell_id.encode() * 50)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunDir:
    """Seven cells, one of them FAILED; packs of three."""
    monkeypatch.setattr(packing, "PACK_CELLS", 3)
    run = RunDir(tmp_path / "run.zip" / "cells")  # names that look like an archive's
    for number in range(6):
        make_cell(run, f"cell.{number}")
    make_cell(run, "bad", CellOutcome(Outcome.FAILED, "why", None, 0.1))
    return run


def files(run: RunDir) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(run.cells)): path.read_bytes() if path.is_file() else None
        for path in sorted(run.cells.rglob("*"))
        if ".partial" not in path.parts
    }


IDS = {f"cell.{number}" for number in range(6)} | {"bad"}


def check(run: RunDir) -> None:
    """Asserts that every cell is there and reads as it was written."""
    for seen in (run, RunDir(run.root)):
        assert seen.finished() == IDS
        for cell_id in IDS:
            cell = seen.cell(cell_id)
            assert cell.read_outcome().outcome is (Outcome.FAILED if cell_id == "bad" else Outcome.COMPLETED)
            assert read_json(cell.checks, list[Check])[0].detail == cell_id
            assert read_json(cell.series, dict[str, str]) == {"cell": cell_id}
            assert compressed.exists(cell.series) and not cell.exchange.exists()
            assert [path.name for path in cell.capture.glob("*.pcap*")] == ["a-p1.pcap.zst"]
            assert (cell.capture / "a-p1.pcap.zst").read_bytes() == cell_id.encode() * 50
            assert cell.apps.is_dir() and list(cell.apps.iterdir()) == []
            assert not (cell.root / "nothing").exists() and not (cell.root / "nothing").is_dir()
            with pytest.raises(FileNotFoundError):
                cell.exchange.read_bytes()


def test_pack_and_unpack(run: RunDir) -> None:
    before = files(run)
    pack_run(run)
    assert sorted(path.name for path in run.cells.iterdir()) == ["bad", "pack-00001.zip", "pack-00002.zip"]
    check(run)
    with opened(run):
        assert files(run) == before
        check(run)
    check(run)
    assert unpack_run(run) == 6
    assert files(run) == before
    assert unpack_run(run) == 0


def test_archives_go_only_when_the_files_are_on_the_disk(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    before = files(run)
    pack_run(run)
    there: list[tuple[bool, set[str]]] = []
    monkeypatch.setattr(os, "sync", lambda: there.append((files(run).items() >= before.items(), names(run))))
    unpack_run(run)
    assert there == [(True, {"pack-00001.zip", "pack-00002.zip"})]
    assert names(run) == set()


def names(run: RunDir) -> set[str]:
    """The archives."""
    return {path.name for path in run.cells.glob("*.zip")}


def steps(run: RunDir) -> Iterator[str]:
    """Packing and unpacking, with a stop before each change of a file's name."""
    pack_one(run, "cell.0")
    yield "one"
    pack_run(run)
    yield "packed"
    unpack_run(run)
    yield "unpacked"


class Killed(BaseException):
    """As SIGKILL would."""


@pytest.mark.parametrize("moment", range(40))
def test_killed_at_every_step(run: RunDir, moment: int, monkeypatch: pytest.MonkeyPatch) -> None:
    before, left = files(run), moment
    real = {name: getattr(os, name) for name in ("replace", "unlink", "rmdir")}

    def counted(name: str) -> object:
        def call(*arguments: object, **more: object) -> object:
            nonlocal left
            if left == 0:
                raise Killed
            left -= 1
            return real[name](*arguments, **more)

        return call

    for name in real:
        monkeypatch.setattr(os, name, counted(name))
    try:
        for _ in steps(run):
            pass
    except Killed:
        pass
    monkeypatch.undo()
    monkeypatch.setattr(packing, "PACK_CELLS", 3)
    run = RunDir(run.root)
    run.clear_partial()
    assert run.finished() == IDS
    unpack_run(run)
    assert files(run) == before
    check(run)


def test_a_few_are_left_alone_until_there_are_enough(run: RunDir) -> None:
    for number in range(2):
        pack_one(run, f"cell.{number}")
    combine(run, at_least=3)
    assert len(list(run.cells.glob("cell.*.zip"))) == 2
    check(run)
    pack_one(run, "cell.2")
    combine(run, at_least=3)
    assert [path.name for path in run.cells.glob("*.zip")] == ["pack-00001.zip"]
    check(run)


def test_a_damaged_pack_is_named(run: RunDir) -> None:
    pack_run(run)
    pack = run.cells / "pack-00001.zip"
    pack.write_bytes(pack.read_bytes()[:-30])
    seen = RunDir(run.root)
    for _ in range(2):
        with pytest.raises(StoreError, match=r"pack-00001\.zip: cannot be read"):
            seen.cell("cell.0")


def test_packs_that_vanish_while_they_are_listed(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process unpacks at that moment."""
    pack_run(run)
    seen = RunDir(run.root)
    real = packs.packs

    def unpacked_then(cells: Path) -> list[Path]:
        found = real(cells)
        monkeypatch.undo()
        unpack_run(run)
        return found

    monkeypatch.setattr(packs, "packs", unpacked_then)
    assert seen.cell("cell.0").read_outcome().outcome is Outcome.COMPLETED


def test_a_packed_run_is_not_looked_through_for_each_cell(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a run that does not change any more only its directory is looked at."""
    pack_run(run)
    os.utime(run.cells, ns=(0, 0))
    seen = RunDir(run.root)
    seen.cell("cell.0")
    monkeypatch.setattr(packs.Packs, "_changed", lambda *_: pytest.fail("looked at every pack"))
    check_cells = [seen.cell(f"cell.{number}").read_outcome().outcome for number in range(6)]
    assert check_cells == [Outcome.COMPLETED] * 6


def test_a_cells_own_archive_is_read_before_a_pack(run: RunDir) -> None:
    """A kill between the two steps of putting together leaves both."""
    pack_run(run)
    make_cell(run, "other")
    write_json(run.cell("other").checks, [Check("x", True, "newer")])
    pack_one(run, "other")
    (run.cells / "other.zip").rename(run.cells / "cell.0.zip")
    assert RunDir(run.root).cell("cell.0").root.parent.name == "cell.0.zip"


def test_looking_up_cells_lists_the_directory_once(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each new cell changes cells/: listing it for each would take time that grows with the square of their number."""
    run = RunDir(run.root)
    listed: list[str] = []
    real = InsidePath.glob

    def glob(path: InsidePath, pattern: str) -> Iterator[InsidePath]:
        listed.append(pattern)
        return real(path, pattern)

    monkeypatch.setattr(InsidePath, "glob", glob)
    for number in range(20):
        assert not run.cell(f"new.{number}").root.exists()
        (run.cells / f"new.{number}").mkdir()
        assert run.cell(f"new.{number}").root.is_dir()
    assert listed == ["*.zip"]


def test_packs_of_another_process_are_seen(run: RunDir) -> None:
    """One directory is looked at while another object packs, unpacks and packs in other groups."""
    seen, other = RunDir(run.root), RunDir(run.root)
    for pack_cells in (3, 2, 4):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(packing, "PACK_CELLS", pack_cells)
            pack_run(other)
        for cell_id in IDS - {"bad"}:
            assert not (run.cells / cell_id).exists()
            assert read_json(seen.cell(cell_id).checks, list[Check])[0].detail == cell_id
        unpack_run(other)
        assert seen.cell("cell.0").root.parent == run.cells


def test_a_new_pack_comes_behind_all_others(run: RunDir) -> None:
    """A name that was given is not given again while a later one is there: whoever knew the first would not look."""
    pack_run(run)
    (run.cells / "pack-00001.zip").unlink()
    make_cell(run, "later")
    pack_run(run)
    assert names(run) == {"pack-00002.zip", "pack-00003.zip"}
    assert RunDir(run.root).cell("later").read_run_outcome() == COMPLETED


def test_cells_are_put_together_whenever_there_are_enough(run: RunDir) -> None:
    """Also those that an earlier process left; packs of three."""
    for number in range(3):
        pack_one(run, f"cell.{number}")
    combiner = Combiner(run)
    for number in range(3, 6):
        pack_one(run, f"cell.{number}")
        combiner.packed(1)
        assert ("pack-00002.zip" in names(run)) == (number == 5)
        assert "pack-00001.zip" in names(run)
    check(run)
