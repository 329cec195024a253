"""The tasks of a worker: run a batch of cells and analyse each in place, or analyse cells that ran before."""

from __future__ import annotations

import functools
import traceback
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Literal

from ..core.errors import DiskFull, NetwarpError
from ..core.schedule_levels import PacketPosition
from ..core.types import Cell, CellOutcome, Check, Outcome
from ..measure.cell import analyze_cell, capture_digests
from ..measure.cell_records import read_cell_records
from ..measure.checks import relative
from ..measure.packet_positions import packet_positions
from ..sandbox import Interrupted
from ..store import compressed
from ..store.packing import pack_one
from ..store.run_dir import CellDir, RunDir, write_atomic, write_json, write_packed_json
from .local_workers import Worker, this_worker
from .run_directory import judge_by_checks, ran_to_its_end

Keep = Literal["all", "captures", "tables"]
"""Of a cell that was analysed and COMPLETED, beside what is derived: also captures; also all records."""


_run_dir = functools.lru_cache(maxsize=1)(RunDir)
"""One of a worker for all of its batches: it knows which packs there are."""


def run_batch(
    root: Path, analyze: bool, keep: Keep, pack: bool, grown_from: Collection[str], cells: Sequence[Cell]
) -> list[CellOutcome]:
    """Run cells into a run directory, and analyse each that ran to its end; pack: as an archive of its own then.

    grown_from: ids of cells whose packets are listed too, for the schedules that follow from them.
    Raises Interrupted; StoreError if the run directory cannot be written (DiskFull: no space): this worker then starts
    no further cell.
    """
    worker = this_worker()
    with worker.busy:
        run, outcomes = _run_dir(root), []
        for cell in cells:
            outcomes.append(run_one(worker, cell, run, analyze, keep, listed=cell.id in grown_from))
            if pack:
                pack_one(run, cell.id)
        return outcomes


def run_one(worker: Worker, cell: Cell, run: RunDir, analyze: bool, keep: Keep, *, listed: bool = False) -> CellOutcome:
    """Run one cell, and analyse it if it ran to its end. Raises the same as `run_batch`."""
    if worker.stopped.is_set() or worker.backend is None:
        raise Interrupted
    try:
        # a worker may have been killed after the cell was in its place
        there = run.cell(cell.id)
        outcome = there.read_run_outcome() if there.outcome.exists() else worker.backend.run_cell(cell, run)
        if analyze and there.root.parent == run.cells:  # not packed, which it is only after this
            analyze_one(there)
            if listed and there.read_outcome().outcome is Outcome.COMPLETED:
                keep_positions(there)
            _drop(there, keep)
    except BaseException:
        worker.stopped.set()  # here: it may take its next batch before the parent has heard of this
        raise
    return outcome


def _drop(cell: CellDir, keep: Keep) -> None:
    """Remove the files of an analysed cell that `keep` does not name. A cell that did not complete keeps everything."""
    if keep == "all" or cell.read_outcome().outcome is not Outcome.COMPLETED:
        return
    for folder in (cell.apps, *([cell.capture] if keep == "tables" else [])):
        folder.remove_tree()
        folder.mkdir()
    for path in (cell.init_log, compressed.packed(cell.init_log), cell.steps):
        path.unlink(missing_ok=True)


def keep_positions(directory: CellDir) -> list[PacketPosition]:
    """List the packets that a cell's hosts sent, and keep the list with what is derived. Raises CaptureError."""
    cell = directory.read_cell()
    positions = packet_positions(cell, directory.root, read_cell_records(directory.init_log).ready.t0_realtime_ns)
    write_packed_json(directory.positions, positions)
    return positions


def analyze_batch(root: Path, cells: Sequence[Cell]) -> None:
    """Analyse cells of a run directory that ran before. Raises Interrupted, CaptureError, StoreError."""
    worker = this_worker()
    with worker.busy:
        for cell in cells:
            if worker.stopped.is_set():
                raise Interrupted
            analyze_one(_run_dir(root).cell(cell.id))


def analyze_one(directory: CellDir) -> None:
    """Analyse one cell that ran to its end; a failed check of the analyser makes its outcome INVALID, and so does an
    error in it, which ends neither the run nor the analysis of other cells.

    Its old checks go first: a cell without them was not analysed, so that old numbers are never taken for new ones.
    Raises StoreError if the results cannot be written.
    """
    if ran_to_its_end(directory):
        for old in (directory.judgement, directory.checks, directory.analysis_error, directory.clock_limits):
            old.unlink(missing_ok=True)
        try:
            analyze_cell(directory.read_cell(), directory.root)
        except DiskFull:
            raise
        except Exception as error:  # noqa: BLE001  whatever it is, it is that cell's, and is kept in its files
            _keep_error(directory, error)
        judge_by_checks(directory)


def _keep_error(directory: CellDir, error: Exception) -> None:
    """Derived files of a cell whose analysis failed: no number, a failed check, and where it happened."""
    text = "".join(traceback.format_exception(error))
    write_atomic(directory.analysis_error, text.encode())
    for old in (directory.series, directory.exchange, directory.pages):
        for path in (old, compressed.packed(old)):
            path.unlink(missing_ok=True)
    write_json(directory.measurements, [])
    write_json(directory.packets, capture_digests(directory.capture))
    said = str(error) if isinstance(error, NetwarpError) else f"{type(error).__name__}: {error}"
    write_json(directory.checks, [Check("analysis", False, relative(said, directory.root))])
