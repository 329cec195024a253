"""A cell in one piece, as an archive or as bytes: what comes out is what went in, nothing is written outside."""

from __future__ import annotations

import contextlib
import io
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from netwarp.core.errors import StoreError
from netwarp.store.cell_archive import cell_from_bytes, cell_to_bytes, pack_cell, unpack_cell

Pack = Callable[[Path], bytes]
Unpack = Callable[[bytes, Path], None]
FORMS = st.sampled_from([(pack_cell, unpack_cell), (cell_to_bytes, cell_from_bytes)])
NAMES = st.text("abz.0-_", min_size=1, max_size=6).filter(lambda name: name.strip("."))
FILES = st.dictionaries(NAMES, st.binary(max_size=300), max_size=5)


def tree(directory: Path) -> dict[str, bytes | None]:
    """Every file and directory."""
    return {
        str(path.relative_to(directory)): path.read_bytes() if path.is_file() else None for path in directory.rglob("*")
    }


@settings(max_examples=50)
@given(form=FORMS, cells=st.dictionaries(st.sampled_from(["", "apps", "capture", "derived/more"]), FILES))
def test_round_trip(
    tmp_path_factory: pytest.TempPathFactory, form: tuple[Pack, Unpack], cells: dict[str, dict[str, bytes]]
) -> None:
    pack, unpack = form
    place = tmp_path_factory.mktemp("cell")
    cell, again = place / "cell", place / "again"
    cell.mkdir()
    for folder, files in cells.items():
        (cell / folder).mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            if not (cell / folder / name).is_dir():
                (cell / folder / name).write_bytes(data)
    archive = pack(cell)
    again.mkdir()
    (again / "left").write_text("of another try")
    unpack(archive, again)
    assert tree(again) == tree(cell)
    assert pack(again) == archive  # equal cells, equal archives


@pytest.mark.parametrize(("pack", "unpack"), [(pack_cell, unpack_cell), (cell_to_bytes, cell_from_bytes)])
def test_links_are_left_out(pack: Pack, unpack: Unpack, tmp_path: Path) -> None:
    (tmp_path / "cell").mkdir()
    (tmp_path / "cell" / "there").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "cell" / "pipe")
    unpack(pack(tmp_path / "cell"), tmp_path / "again")
    assert tree(tmp_path / "again") == {}


@pytest.mark.parametrize("pack", [pack_cell, cell_to_bytes])
def test_a_folder_that_cannot_be_listed(pack: Pack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is never left out in silence: the directory is removed afterwards."""
    (tmp_path / "cell" / "capture").mkdir(parents=True)
    (tmp_path / "cell" / "capture" / "a.pcap.zst").write_bytes(b"x")
    real = os.listdir

    def listdir(folder: int) -> list[str]:
        names = real(folder)
        if "a.pcap.zst" in names:
            raise OSError(5, "Input/output error")
        return names

    monkeypatch.setattr(os, "listdir", listdir)
    with pytest.raises(StoreError, match="Input/output error"):
        pack(tmp_path / "cell")


def test_names_that_no_file_can_have(tmp_path: Path) -> None:
    (tmp_path / "cell").mkdir()
    (tmp_path / "cell" / os.fsdecode(b"\xff")).write_bytes(b"x")
    with pytest.raises(StoreError, match="not UTF-8"):
        cell_to_bytes(tmp_path / "cell")
    deep = msgspec.msgpack.encode([("a/" * 3000 + "a", b"x")])
    with pytest.raises(StoreError, match="more than 64 deep"):
        cell_from_bytes(deep, tmp_path / "again")


@pytest.mark.parametrize("name", ["../outside", "/outside", "apps/../../outside", ".."])
def test_nothing_is_written_outside(name: str, tmp_path: Path) -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr(zipfile.ZipInfo(name), b"x")
    with pytest.raises(StoreError, match="outside of the cell"):
        unpack_cell(archive.getvalue(), tmp_path / "a" / "cell")
    with pytest.raises(StoreError, match="outside of the cell"):
        cell_from_bytes(msgspec.msgpack.encode([(name, b"x")]), tmp_path / "a" / "cell")
    assert not list(tmp_path.rglob("outside"))


@settings(max_examples=200)
@given(form=FORMS, data=st.data())
def test_damaged_archives(
    tmp_path_factory: pytest.TempPathFactory, form: tuple[Pack, Unpack], data: st.DataObject
) -> None:
    """Whatever the bytes: a StoreError, or files."""
    pack, unpack = form
    place = tmp_path_factory.mktemp("damaged")
    (place / "cell" / "apps").mkdir(parents=True)
    (place / "cell" / "cell.json").write_bytes(b"{}" * 40)
    (place / "cell" / "apps" / "f.zst").write_bytes(bytes(range(40)))
    archive = bytearray(pack(place / "cell"))
    for _ in range(data.draw(st.integers(1, 4))):
        archive[data.draw(st.integers(0, len(archive) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(StoreError):
        unpack(bytes(archive[: data.draw(st.integers(0, len(archive)))]), place / "again")
    assert {path.name for path in place.iterdir()} <= {"cell", "again"}
