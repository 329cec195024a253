"""What a worker does: it runs a batch of cells and analyses each where it ran, or analyses cells that ran before."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..core.types import Cell, CellOutcome
from ..measure.cell import analyze_cell
from ..sandbox import Interrupted
from ..store.run_dir import CellDir, RunDir
from .collect import judge_by_checks, ran_to_its_end
from .local_workers import Worker, this_worker


def run_batch(root: Path, analyze: bool, cells: Sequence[Cell]) -> list[CellOutcome]:
    """Run cells into a run directory, and analyse each that ran to its end.

    Raises Interrupted; StoreError where the run directory cannot be written (DiskFull: no room): then this worker
    starts nothing more.
    """
    worker = this_worker()
    with worker.busy:
        return [_run(worker, cell, RunDir(root), analyze) for cell in cells]


def _run(worker: Worker, cell: Cell, run: RunDir, analyze: bool) -> CellOutcome:
    if worker.stopped.is_set() or worker.backend is None:
        raise Interrupted
    try:
        # a worker may have been killed after the cell was in its place
        there = run.cell(cell.id)
        outcome = there.read_run_outcome() if there.outcome.exists() else worker.backend.run_cell(cell, run)
        if analyze:
            analyze_one(there)
    except BaseException:
        worker.stopped.set()  # here: it may take its next batch before the parent has heard of this
        raise
    return outcome


def analyze_batch(root: Path, cells: Sequence[Cell]) -> None:
    """Derive cells of a run directory that ran before. Raises Interrupted, CaptureError, StoreError."""
    worker = this_worker()
    with worker.busy:
        for cell in cells:
            if worker.stopped.is_set():
                raise Interrupted
            analyze_one(RunDir(root).cell(cell.id))


def analyze_one(directory: CellDir) -> None:
    """Derive one cell that ran to its end; a failed check of the analyser makes its outcome INVALID."""
    if ran_to_its_end(directory):
        analyze_cell(directory.read_cell(), directory.root)
        judge_by_checks(directory)
