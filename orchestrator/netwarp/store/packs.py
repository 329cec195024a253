"""Packed cells of a run: ZIP archives in its cells/, and the files in them as paths that can be read.

`cells/<cell_id>.zip` is one cell (store/cell_archive.py). `cells/pack-00001.zip` holds up to PACK_CELLS of those, each
a member of its own that is not compressed again. Every archive is written whole or not at all and never changed: a kill
leaves a cell in the form it had, or in two; then the directory is read before its archive, and that before a pack.
"""

from __future__ import annotations

import contextlib
import fnmatch
import functools
import io
import os
import re
import time
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from ..core.archives import BROKEN, open_archive
from ..core.errors import StoreError
from ..core.inside import InsidePath, inside
from ..core.limits import limits

PACK_CELLS = 1000
"""A pack's cells, at most: 100,000 cells are 100 files then, and packing as many takes about a second."""
SUFFIX = ".zip"
PACK = re.compile(r"pack-\d{5}\.zip")
CELL_NAME = re.compile(r"[A-Za-z0-9._-]{1,200}", re.ASCII)
OUR_FOLDERS = (".", ".partial", ".failed")
"""In cells/ beside the cells."""
SETTLED_NS = 1_000_000_000
"""Two changes of a directory within one tick of the kernel have the same time: one that is younger tells nothing."""
_KEPT = 4
"""Opened cells: whoever reads files of a cell reads several."""


class PackedPath(InsidePath):
    """A file or directory of a packed cell, for reading: cells/<archive>.zip/<cell_id>/<name in the cell>."""

    @classmethod
    def of(cls, archive: Path, cell_id: str) -> PackedPath:
        """The directory of a packed cell."""
        return cls._made(inside(archive).base, archive / cell_id)

    @property
    def archive(self) -> Path:
        """The archive it is in. Raises FileNotFoundError."""
        return self._place()[0]

    def _place(self) -> tuple[InsidePath, str, str]:
        """(archive, cell, name in it)."""
        parts = self.parts
        for number in range(1, len(parts) - 1):
            if parts[number].endswith(SUFFIX) and parts[number - 1] == "cells":
                archive = InsidePath.at(self.base, Path(*parts[: number + 1]))
                if archive.is_file():
                    return archive, parts[number + 1], "/".join(parts[number + 2 :])
        raise FileNotFoundError(2, os.strerror(2), str(self))

    def _opened(self) -> tuple[zipfile.ZipFile, str]:
        archive, cell, name = self._place()
        return opened_cell(archive, cell), name

    def exists(self, **more: Any) -> bool:
        """True if it is there."""
        return self.is_file() or self.is_dir()

    def is_file(self, **more: Any) -> bool:
        """True if it is a file."""
        try:
            cell, name = self._opened()
        except FileNotFoundError:
            return False
        return name in cell.NameToInfo

    def is_dir(self, **more: Any) -> bool:
        """True if it is a directory: named itself, or in the name of a file."""
        try:
            cell, name = self._opened()
        except FileNotFoundError:
            return False
        return not name or any(member.startswith(f"{name}/") for member in cell.NameToInfo)

    def stat(self, **more: Any) -> os.stat_result:
        """Of a file, of which only the size is known. Raises FileNotFoundError."""
        cell, name = self._opened()
        if name not in cell.NameToInfo:
            raise FileNotFoundError(2, os.strerror(2), str(self))
        return os.stat_result((0o100644, 0, 0, 1, 0, 0, cell.NameToInfo[name].file_size, 0, 0, 0))

    def is_symlink(self) -> bool:
        """None is ever packed."""
        return False

    def read_bytes(self, limit: str = "whole_bytes") -> bytes:
        """The file's content, within the limits of an archive. Raises FileNotFoundError, OSError."""
        cell, name = self._opened()
        try:
            return cell.read(name)
        except KeyError as error:
            raise FileNotFoundError(2, os.strerror(2), str(self)) from error
        except BROKEN as error:
            raise OSError(5, f"damaged: {error}", str(self)) from error

    def read_text(self, *arguments: Any, **more: Any) -> str:
        """The file's content as UTF-8."""
        return self.read_bytes().decode()

    def open(self, *arguments: Any, **more: Any) -> IO[Any]:  # type: ignore[override]  # of all modes, this is one
        """The file's bytes, for reading."""
        return io.BytesIO(self.read_bytes())

    def iterdir(self) -> Iterator[InsidePath]:  # type: ignore[override]  # Path says its own type
        """The names in the directory."""
        cell, name = self._opened()
        before = f"{name}/" if name else ""
        inside = {member[len(before) :].split("/")[0] for member in cell.NameToInfo if member.startswith(before)}
        return (self / child for child in sorted(inside - {""}))

    def glob(self, pattern: str, **more: Any) -> Iterator[InsidePath]:  # type: ignore[override]  # likewise
        """Of this directory alone."""
        return (path for path in self.iterdir() if fnmatch.fnmatch(path.name, pattern))

    def files(self) -> dict[str, int]:
        """Every file below this cell -> its size."""
        cell, _ = self._opened()
        return {name: member.file_size for name, member in sorted(cell.NameToInfo.items()) if not member.is_dir()}


def opened_cell(archive: Path, cell_id: str) -> zipfile.ZipFile:
    """One packed cell. Raises FileNotFoundError: it is not in that archive; StoreError: it is damaged."""
    return _opened(archive, cell_id, archive.stat().st_mtime_ns)


@functools.lru_cache(maxsize=_KEPT)
def _opened(archive: Path, cell_id: str, changed_ns: int) -> zipfile.ZipFile:
    try:
        return open_archive(io.BytesIO(cell_bytes(archive, cell_id)))
    except BROKEN as error:
        raise StoreError(f"{archive}: {cell_id} cannot be read: {error}; restore that file, or remove it") from error


def cell_bytes(archive: Path, cell_id: str) -> bytes:
    """The archive of one cell. Raises as opened_cell."""
    if not PACK.fullmatch(archive.name):
        if archive.stat().st_size > limits().whole_bytes:
            raise StoreError(f"{archive}: has {limits().beyond('whole_bytes')}")
        return inside(archive).read_bytes()
    try:
        with inside(archive).open("rb") as file, open_archive(file) as pack:
            return pack.read(cell_id + SUFFIX)
    except KeyError as error:
        raise FileNotFoundError(2, os.strerror(2), f"{archive}/{cell_id}") from error
    except BROKEN as error:
        raise StoreError(f"{archive}: cannot be read: {error}") from error


def archives(cells: Path) -> dict[str, Path]:
    """Cell -> the archive it is in: one of its own, else the newest pack. Raises StoreError: a pack is damaged."""
    return _cells_in(packs(cells)) | {path.stem: path for path in singles(cells)}


def packs(cells: Path) -> list[Path]:
    """The packs, by number."""
    return sorted(path for path in cells.glob(f"*{SUFFIX}") if PACK.fullmatch(path.name))


def next_pack(there: Sequence[Path], cells: Path) -> Path:
    """The name of the pack after all that are there: numbers are given once, gaps are not filled."""
    number = int(there[-1].stem.removeprefix("pack-")) if there else 0
    return cells / f"pack-{number + 1:05}{SUFFIX}"


class Packs:
    """The packs of a directory of cells, which is listed again only when one of them has come, gone or changed: in a
    directory of 10,000 cells that takes 14 ms, and a run looks up every cell.
    """

    def __init__(self, cells: Path) -> None:
        self._cells = cells
        self._looked_ns = -1
        """The time of change of cells/ itself: if that is the same, so is everything in it."""
        self._there: dict[Path, int] | None = None
        """Pack -> its time of change, ns."""
        self._packed: dict[str, Path] = {}

    def pack_of(self, cell_id: str) -> Path | None:
        """The newest pack that holds a cell. Raises StoreError: a pack is damaged."""
        with contextlib.suppress(FileNotFoundError):  # unpacked at this moment: the cell is a directory
            changed_ns = self._cells.stat().st_mtime_ns
            if changed_ns != self._looked_ns and (self._there is None or self._changed(self._there)):
                found = packs(self._cells)
                there = {path: path.stat().st_mtime_ns for path in found}
                self._packed = _cells_in(found)
                self._there = there
            settled = time.time_ns() - changed_ns > SETTLED_NS
            self._looked_ns = changed_ns if settled else -1
            return self._packed.get(cell_id)
        return None

    def _changed(self, there: dict[Path, int]) -> bool:
        same = all(path.exists() and path.stat().st_mtime_ns == changed_ns for path, changed_ns in there.items())
        return not same or next_pack(list(there), self._cells).exists()


def singles(cells: Path) -> list[Path]:
    """The archives of one cell each."""
    return sorted(path for path in cells.glob(f"*{SUFFIX}") if path.is_file() and not PACK.fullmatch(path.name))


def _cells_in(there: Sequence[Path]) -> dict[str, Path]:
    return {cell_id: pack for pack in there for cell_id in _cells_of(pack, pack.stat().st_mtime_ns)}


@functools.lru_cache(maxsize=4096)
def _cells_of(pack: Path, changed_ns: int) -> tuple[str, ...]:
    try:
        with inside(pack).open("rb") as file, open_archive(file) as archive:
            names = archive.namelist()
        if not all(name.endswith(SUFFIX) for name in names):  # cut off: the end of the last cell's archive is read
            raise zipfile.BadZipFile("its end is missing")
    except BROKEN as error:
        raise StoreError(f"{pack}: cannot be read: {error}; restore that file, or remove it") from error
    cells = tuple(name.removesuffix(SUFFIX) for name in names)
    for name in cells:
        if not CELL_NAME.fullmatch(name) or name.startswith("..") or name in OUR_FOLDERS:
            raise StoreError(f"{pack}: has a cell named {name[:80]!r}, which is no name of one; remove that file")
    return cells
