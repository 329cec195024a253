"""A run as one file, without captures: its spec, plan, tables and the hashes of its captures, so that another machine
can run its cells again and hold them against it (`netwarp archive verify FILE`).
"""

from __future__ import annotations

import contextlib
import io
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from ..core.errors import SpecError, StoreError
from ..core.types import Cell
from ..store.run_dir import read_json, whole_file
from .run_directory import open_run

SUFFIX = ".tar.xz"
OF_THE_RUN = ("manifest.json", "plan.json", "outputs.json", "calibration.json", "conclusion.json")
OF_A_CELL = (
    "cell.json", "outcome.json",
    *(f"derived/{name}.json" for name in ("packets", "judgement", "checks", "measurements")),
)  # fmt: skip
"""The files of a cell that a comparison reads: of captures by their hashes, and of numbers where those differ."""
LEFT_OUT = ("measurements.csv", "windows.csv")
"""Tables that are too large: the cells have their own measurements; windows of time stand in the figures' tables."""
MOST_BYTES = 1 << 30
"""Of a bundle that is opened: it may come from anywhere."""


def bundle(run_dir: str | Path, out: str | Path) -> Path:
    """Write a run's bundle; equal runs give equal files.

    Raises StoreError where it is no run, SpecError where a cell that completed was never analysed.
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
            if files[name].is_file():
                content = files[name].read_bytes()
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
    with tempfile.TemporaryDirectory(prefix="netwarp-bundle-") as place:
        try:
            with tarfile.open(path, "r:xz") as archive:
                entries = archive.getmembers()
                if sum(entry.size for entry in entries) > MOST_BYTES or not all(_is_plain(entry) for entry in entries):
                    raise StoreError(f"{path}: is no bundle of a run: netwarp archive bundle RUN writes one")
                archive.extractall(place)
        except (tarfile.TarError, OSError, EOFError) as error:
            raise StoreError(f"{path}: is no bundle that can be read ({error})") from error
        Path(place).chmod(0o711)  # the user that root becomes must reach the cells in it
        _name_cells(Path(place))
        yield Path(place)


def _is_plain(entry: tarfile.TarInfo) -> bool:
    """A file whose name stays inside (Python's own filter is younger than 3.11.0)."""
    name = PurePosixPath(entry.name)
    return entry.isfile() and not name.is_absolute() and ".." not in name.parts


def _name_cells(place: Path) -> None:
    """Give the cells' directories the names that this netwarp has for them; another version may have others."""
    for folder in sorted((place / "cells").iterdir()):
        cell = read_json(folder / "cell.json", Cell)
        if cell.id != folder.name:
            folder.rename(folder.with_name(cell.id))
