"""A cell as one archive: what comes out is what went in, and nothing is written outside of the cell."""

from __future__ import annotations

import contextlib
import io
import os
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from netwarp.core.errors import StoreError
from netwarp.store.cell_archive import pack_cell, unpack_cell

NAMES = st.text("abz.0-_", min_size=1, max_size=6).filter(lambda name: name.strip("."))
FILES = st.dictionaries(NAMES, st.binary(max_size=300), max_size=5)


def tree(directory: Path) -> dict[str, bytes | None]:
    """Every file and directory."""
    return {
        str(path.relative_to(directory)): path.read_bytes() if path.is_file() else None for path in directory.rglob("*")
    }


@settings(max_examples=50, deadline=None)
@given(cells=st.dictionaries(st.sampled_from(["", "apps", "capture", "derived/more"]), FILES))
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, cells: dict[str, dict[str, bytes]]) -> None:
    place = tmp_path_factory.mktemp("cell")
    cell, again = place / "cell", place / "again"
    cell.mkdir()
    for folder, files in cells.items():
        (cell / folder).mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            if not (cell / folder / name).is_dir():
                (cell / folder / name).write_bytes(data)
    archive = pack_cell(cell)
    again.mkdir()
    (again / "left").write_text("of another try")
    unpack_cell(archive, again)
    assert tree(again) == tree(cell)
    assert pack_cell(again) == archive  # equal cells, equal archives


def test_links_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "cell").mkdir()
    (tmp_path / "cell" / "there").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "cell" / "pipe")
    unpack_cell(pack_cell(tmp_path / "cell"), tmp_path / "again")
    assert not (tmp_path / "again").exists() or tree(tmp_path / "again") == {}


@pytest.mark.parametrize("name", ["../outside", "/outside", "apps/../../outside", ".."])
def test_nothing_is_written_outside(name: str, tmp_path: Path) -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr(zipfile.ZipInfo(name), b"x")
    with pytest.raises(StoreError, match="outside of the cell"):
        unpack_cell(archive.getvalue(), tmp_path / "a" / "cell")
    assert not list(tmp_path.rglob("outside"))


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_damaged_archives(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Whatever the bytes: a StoreError, or files."""
    place = tmp_path_factory.mktemp("damaged")
    (place / "cell" / "apps").mkdir(parents=True)
    (place / "cell" / "cell.json").write_bytes(b"{}" * 40)
    (place / "cell" / "apps" / "f.zst").write_bytes(bytes(range(40)))
    archive = bytearray(pack_cell(place / "cell"))
    for _ in range(data.draw(st.integers(1, 4))):
        archive[data.draw(st.integers(0, len(archive) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(StoreError):
        unpack_cell(bytes(archive[: data.draw(st.integers(0, len(archive)))]), place / "again")
    assert {path.name for path in place.iterdir()} <= {"cell", "again"}
