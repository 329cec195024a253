"""A run as one file, without captures: its spec, plan, tables and the hashes of its captures, so that another machine
can run its cells again and hold them against it (`netwarp archive verify FILE`).
"""

from __future__ import annotations

import contextlib
import io
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from ..core.errors import SpecError
from ..core.scratch import scratch
from ..core.types import Cell
from ..store.bundle_files import OF_A_CELL, OF_THE_RUN, refuse_unpackable, unpack_bundle
from ..store.digests import digests_text
from ..store.run_dir import read_json, whole_file
from .run_directory import open_run

SUFFIX = ".tar.xz"
LEFT_OUT = ("measurements.csv", "windows.csv")
"""Tables that are too large: the cells have their own measurements; windows of time stand in the figures' tables."""


def bundle(run_dir: str | Path, out: str | Path) -> Path:
    """Write a run's bundle; equal runs give equal files.

    Raises StoreError where it is no run, SpecError where a cell that completed was never analysed, StoreError
    also of a file that no bundle may hold.
    """
    run = open_run(run_dir)
    files = {name: run.path / name for name in OF_THE_RUN}
    for folder in (run.directory.spec, run.directory.tables):
        every = (path for path in folder.rglob("*") if path.is_file() and path.name not in LEFT_OUT)
        files |= {str(path.relative_to(run.path)): path for path in every}
    for cell_id in run.directory.finished():
        place = run.directory.cell(cell_id)
        if not place.packets.exists() and str(place.read_run_outcome().outcome) == "COMPLETED":
            raise SpecError(f"{run.path}: {cell_id} was never analysed, so its captures have no hash: netwarp analyze")
        files |= {f"cells/{cell_id}/{name}": place.root / name for name in OF_A_CELL}  # packed ones have other paths
    out = Path(out)
    with whole_file(out) as file, tarfile.open(fileobj=file, mode="w:xz", format=tarfile.PAX_FORMAT) as archive:
        for name in sorted(files, key=PurePosixPath):
            listed = name == "digests.json" and not files[name].is_file()  # not in a run of an older netwarp
            if listed or files[name].is_file():
                content = digests_text(run.directory) if listed else files[name].read_bytes()
                refuse_unpackable(name, len(content))
                archive.addfile(_anonymous(name, len(content)), io.BytesIO(content))
    return out


def _anonymous(name: str, size: int) -> tarfile.TarInfo:
    """Nothing in it says whose machine it was, or when the file was written."""
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = size, 0o644
    return entry


@contextlib.contextmanager
def opened(path: str | Path) -> Iterator[Path]:
    """A run directory as it is; a bundle in a directory that is there as long as this lasts. Raises StoreError."""
    path = Path(path)
    if not path.is_file():
        yield path
        return
    with scratch("netwarp-bundle-") as place:
        place.chmod(0o711)  # the user that root becomes must reach the cells in it
        unpack_bundle(path, place)
        _name_cells(place)
        yield place


def _name_cells(place: Path) -> None:
    """Give the cells' directories the names that this netwarp has for them; another version may have others."""
    cells = place / "cells"
    for folder in sorted(cells.iterdir()) if cells.is_dir() else ():
        cell = read_json(folder / "cell.json", Cell)
        if cell.id != folder.name:
            folder.rename(folder.with_name(cell.id))
