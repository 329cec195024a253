"""Packs finished cells of a run into archives, and unpacks them. Whoever calls holds the run directory alone."""

from __future__ import annotations

import contextlib
import os
import zipfile
from collections.abc import Iterator

from ..core.types import Outcome
from .cell_archive import EPOCH, pack_cell, packable, unpack_cell
from .packs import PACK_CELLS, SUFFIX, archives, cell_bytes, next_pack, packs, singles
from .run_dir import RunDir, whole_file, write_atomic

PACK_ABOVE = 10_000
"""Runs of more cells are packed unless somebody says otherwise."""


def pack_one(run: RunDir, cell_id: str) -> None:
    """cells/<cell_id>/ -> cells/<cell_id>.zip, of a cell that COMPLETED and was analysed; any other stays open, for it
    has to be looked into, and so does one that is larger than what is read of an archive. Raises StoreError.
    """
    directory = run.cells / cell_id
    cell = run.cell(cell_id)
    completed = directory.is_dir() and cell.checks.exists() and cell.read_outcome().outcome is Outcome.COMPLETED
    if completed and packable(directory):
        write_atomic(run.cells / f"{cell_id}{SUFFIX}", pack_cell(directory))
        # by one rename: a directory that is half gone would be read before the archive
        gone = run.partial_cell(f"{cell_id}{SUFFIX}").root
        gone.parent.mkdir(exist_ok=True)
        directory.replace(gone)
        gone.remove_tree()


class Combiner:
    """Puts archives of one cell together into packs while cells are packed. Listing them takes 7 ms, so that is done
    only when there can be enough of them.
    """

    def __init__(self, run: RunDir) -> None:
        self._run = run
        self._waiting = PACK_CELLS  # an earlier process may have left as many

    def packed(self, cells: int) -> None:
        """So many more cells may have become archives. Raises StoreError."""
        self._waiting += cells
        if self._waiting >= PACK_CELLS:
            self._waiting = combine(self._run, at_least=PACK_CELLS)


def combine(run: RunDir, at_least: int = 1) -> int:
    """Put archives of one cell together into packs, once there are so many of them; how many are left. Raises
    StoreError.
    """
    waiting = singles(run.cells)
    while len(waiting) >= at_least > 0 and waiting:
        batch, waiting = waiting[:PACK_CELLS], waiting[PACK_CELLS:]
        target = next_pack(packs(run.cells), run.cells)
        with whole_file(target) as file, zipfile.ZipFile(file, "w") as pack:
            for path in batch:
                member = zipfile.ZipInfo(path.name, EPOCH)
                member.external_attr = 0o644 << 16
                pack.writestr(member, path.read_bytes())
        for path in batch:
            path.unlink()
    return len(waiting)


def pack_run(run: RunDir) -> None:
    """Pack every open cell that may be packed. Raises StoreError."""
    for cell_id in sorted(run.finished()):
        pack_one(run, cell_id)
    combine(run)
    _tidy(run)


def unpack_run(run: RunDir) -> int:
    """Every packed cell as cells/<cell_id>/ again; how many. What is open already stays as it is. Raises StoreError."""
    packed = archives(run.cells)
    count = 0
    for cell_id, archive in packed.items():
        if not (run.cells / cell_id).is_dir():
            unpack_one(run, cell_id, cell_bytes(archive, cell_id))
            count += 1
    if count:
        os.sync()  # what is removed next has been synced; a power failure must not leave neither
    for archive in [*set(packed.values()), *singles(run.cells), *packs(run.cells)]:
        archive.unlink(missing_ok=True)
    _tidy(run)
    return count


def _tidy(run: RunDir) -> None:
    with contextlib.suppress(OSError):  # not there, or not empty
        run.partial.rmdir()


def unpack_one(run: RunDir, cell_id: str, archive: bytes) -> None:
    """Put one cell's files into its directory, by one rename. Raises StoreError."""
    unpack_cell(archive, run.partial_cell(cell_id).root)
    run.install(cell_id)


@contextlib.contextmanager
def opened(run: RunDir) -> Iterator[None]:
    """Every cell is a directory within the block, for what writes into cells; packed again behind it if it was."""
    if not archives(run.cells):
        yield
        return
    unpack_run(run)
    try:
        yield
    finally:
        pack_run(run)
