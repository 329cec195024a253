"""The tasks of a worker in a dask cluster: it runs cells in a scratch directory of its own and returns their files."""

from __future__ import annotations

import hashlib
import shutil
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..core.types import Cell
from ..sandbox import VirtualBackend
from ..store.cell_archive import cell_to_bytes
from ..store.run_dir import RunDir
from .cell_tasks import Keep, run_one
from .cluster_files import Instrument, place_of
from .local_workers import Worker

LOOK_S = 0.1
TELL_S = 0.5
"""A cell's progress is sent through the scheduler at most this often (seconds)."""


@dataclass(frozen=True, slots=True)
class PackedCell:
    """A finished cell in transfer: its files (`cell_to_bytes`), and their hash."""

    files: bytes
    sha256: str


def run_packed(
    instrument: Instrument, analyze: bool, keep: Keep, topic: str, cells: Sequence[Cell]
) -> list[PackedCell]:
    """Run cells, and analyse each that ran to its end; none of their files stay on this machine.

    Raises FilesMissing, Unlike; Interrupted if the task was cancelled; StoreError if the scratch directory cannot be
    written, SpecError if a guest could not see it.
    """
    from distributed import get_worker

    dask = get_worker()
    place = place_of(instrument, dask.address)
    backend = VirtualBackend(place.kernel, place.programs)
    last_told = 0.0

    def tell(cell_id: str, virtual_s: float) -> None:
        nonlocal last_told
        if time.monotonic() - last_told > TELL_S:
            last_told = time.monotonic()
            dask.log_event(topic, [cell_id, virtual_s])

    backend.progress = tell
    worker = Worker(backend)
    task = dask.get_current_task()
    ended = threading.Event()

    def watch() -> None:
        """Stop the sandbox when nobody waits for this task any more: cancelled, or whoever asked for it is gone."""
        while not ended.wait(LOOK_S):
            state = dask.state.tasks.get(task)
            if state is None or state.state not in ("executing", "long-running"):
                worker.stop()
                return

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    scratch = RunDir(
        Path(dask.local_directory).absolute() / f"netwarp-{hashlib.sha256(str(task).encode()).hexdigest()[:16]}"
    )
    try:
        backend.check_place(scratch.root)
        scratch.partial.mkdir(parents=True, exist_ok=True)
        return [_packed(worker, cell, scratch, analyze, keep) for cell in cells]
    finally:
        ended.set()
        watcher.join()
        shutil.rmtree(scratch.root, ignore_errors=True)


def _packed(worker: Worker, cell: Cell, scratch: RunDir, analyze: bool, keep: Keep) -> PackedCell:
    run_one(worker, cell, scratch, analyze, keep)
    directory = scratch.cell(cell.id).root
    files = cell_to_bytes(directory)
    shutil.rmtree(directory)
    return PackedCell(files, hashlib.sha256(files).hexdigest())
