"""Removes the captures of finished runs, or the files that can be made again from them; unpacks packed cells."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..core.errors import SpecError, StoreError
from ..core.types import Outcome
from ..core.units import counted
from ..store.packing import opened, unpack_run
from ..store.plan_file import read_plan
from ..store.run_dir import RunDir, locked


@dataclass(frozen=True, slots=True)
class Freed:
    """The size and number of captures that were removed."""

    bytes: int
    captures: int


def remove_captures(run_dir: str | Path) -> Freed:
    """Remove a finished run's captures. Raises StoreError if one is still needed, because cells were not run or not
    analysed; SpecError if the directory is not a run.
    """
    run = _run_directory(run_dir)
    with locked(run), opened(run):
        return _remove_captures(run)


def _remove_captures(run: RunDir) -> Freed:
    captures = run.captures()
    if not captures:
        return Freed(0, 0)
    plan = read_plan(run)
    finished = run.finished()
    left = [cell.id for cell in plan.cells if cell.id not in finished]
    if left:
        raise StoreError(
            f"{run.root}: {len(left)} of its {counted(len(plan.cells), 'cell')} were not run; finish it first with "
            "netwarp run ... --resume, or remove the whole directory"
        )
    for cell_id in sorted(finished):
        cell = run.cell(cell_id)
        if cell.read_outcome().outcome is Outcome.COMPLETED and not cell.checks.exists():
            raise StoreError(f"{run.root}: {cell_id} was never analysed; run `netwarp analyze {run.root}` first")
    size = sum(path.stat().st_size for path in captures)
    for path in captures:
        path.unlink()
    return Freed(size, len(captures))


def remove_derived(run_dir: str | Path) -> Freed:
    """Remove the rest of an interrupted run and everything that can be made again from the captures.

    Raises StoreError if there are no captures; SpecError if the directory is not a run.
    """
    run = _run_directory(run_dir)
    with locked(run), opened(run):
        return _remove_derived(run)


def _remove_derived(run: RunDir) -> Freed:
    finished = sorted(run.finished())
    for cell_id in finished:
        cell = run.cell(cell_id)
        if cell.checks.exists() and not any(cell.capture.glob("*.pcap*")):
            raise StoreError(
                f"{run.root}: the captures of {cell_id} were removed, so its derived files cannot be made again; "
                "nothing was removed. To remove all of the run, remove the directory"
            )
    before, _ = run.sizes()
    run.clear_partial()
    run.digests.unlink(missing_ok=True)
    for path in [run.tables, run.report, *(run.cell(cell_id).derived for cell_id in finished)]:
        if path.exists():
            path.remove_tree()
    return Freed(before - run.sizes()[0], 0)


def unpack(run_dir: str | Path) -> int:
    """Make cells/<cell_id>/ of every packed cell again; how many there were. Raises SpecError, StoreError."""
    run = _run_directory(run_dir)
    with locked(run):
        run.clear_partial()
        return unpack_run(run)


def _run_directory(run_dir: str | Path) -> RunDir:
    run = RunDir(Path(run_dir))
    if not run.plan.exists():
        raise SpecError(f"{run.root}: is not a run directory of netwarp's (no plan.json)")
    return run
