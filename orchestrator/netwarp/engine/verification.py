"""Runs cells again: to restore removed captures, or to compare a run with what its cells give now (a golden run)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ..captures.first_difference import difference_of_files
from ..core.errors import CaptureError, SpecError, StoreError
from ..core.types import Cell, CellOutcome, Outcome
from ..measure.capture_point import capture_file
from ..measure.cell import capture_digests
from ..measure.cell_records import read_cell_records
from ..plan.types import Plan
from ..results.compare import Comparison, compare, levels_of
from ..sandbox.choose import choose, lateness_s, with_kernels
from ..store import compressed
from ..store.packing import unpack_one
from ..store.packs import archives, cell_bytes
from ..store.run_dir import CellDir, RunDir, locked, read_json
from .collect import collect, ran_to_its_end
from .events import CellFinished, CellsFinished, CellsStarted, Notice, Progress, no_progress
from .execute import analyze_cells, execute
from .run_directory import Run, open_run

Difference = str
"""In words: what differs first."""


@dataclass(frozen=True, slots=True)
class Verified:
    """kernels: release and hash of the reference's kernel and of this one's. equal: the cells whose captures equal
    those of the reference, byte for byte. differ: the others, cell id -> the first packet that differs, or the reason
    why they cannot be compared.

    numbers: where cells differ, their numbers beside the reference's (A: the reference). None: all are equal, or
    `without_numbers` says why there is nothing to compare.
    """

    kernels: tuple[str, str]
    equal: tuple[str, ...]
    differ: Mapping[str, Difference]
    numbers: Comparison | None = None
    without_numbers: str = ""

    @property
    def same_kernel(self) -> bool:
        """True if both have the same kernel binary: else captures need not be equal."""
        return self.kernels[0] == self.kernels[1]


def replay(run_dir: str | Path, cells: Sequence[str], *, progress: Progress = no_progress) -> list[Path]:
    """Run cells again and restore their removed captures and other files; returns the captures.

    If a cell's new captures differ from those of the run, its files are discarded. Raises SpecError,
    BackendUnavailable, StoreError.
    """
    run = open_run(run_dir)
    known = {cell.id: cell for cell in run.plan.cells}
    unknown = [cell_id for cell_id in cells if cell_id not in known]
    if unknown:
        raise SpecError(f"{run.path}: has no cell {unknown[0]}; tables/cells.csv names them")
    for cell_id in cells:
        if not run.directory.cell(cell_id).packets.exists():
            raise SpecError(
                f"{run.path}: {cell_id} was never analysed: nothing tells whether its captures are the same"
            )
    captures: list[Path] = []
    with locked(run.directory):
        packed = archives(run.directory.cells)
        for cell_id in dict.fromkeys(cells):
            if cell_id in packed and not (run.directory.cells / cell_id).is_dir():
                unpack_one(run.directory, cell_id, cell_bytes(packed[cell_id], cell_id))
        again = _run_again(run, [known[cell_id] for cell_id in dict.fromkeys(cells)], None, progress)
        try:
            for cell_id in dict.fromkeys(cells):
                captures += _restore(run, again.cell(cell_id), run.directory.cell(cell_id))
        finally:
            run.directory.clear_partial()
    return captures


def _run_again(run: Run, cells: Sequence[Cell], jobs: int | None, progress: Progress) -> RunDir:
    """Run cells of a run in its cells/.partial. Raises SpecError if they cannot be expected to give equal captures."""
    if run.manifest.backend != "virtual":
        raise SpecError(
            f"{run.path}: ran on {run.manifest.backend}: only in virtual time the same cell gives the same captures"
        )
    chosen = with_kernels(choose("virtual"), run.plan.cells)
    then, now = (run.manifest.kernel_release, run.manifest.kernel_sha256), chosen.identity
    if then != now:
        progress(Notice(f"this is another kernel than the run's: {_named(now)}, not {_named(then)}"))
    run.directory.clear_partial()
    place = RunDir(run.directory.partial / "again")
    progress(CellsStarted(tuple(cells), frozenset()))
    try:
        execute(
            cells, chosen.backend, place, jobs=jobs or os.cpu_count() or 1, progress=progress,
            finished=lambda cell, outcome: progress(CellFinished(cell, outcome)),
        )  # fmt: skip
    finally:
        progress(CellsFinished())
    return place


def _named(kernel: tuple[str, str]) -> str:
    return f"{kernel[0]}, sha256 {kernel[1][:12]}"


def _restore(run: Run, again: CellDir, kept: CellDir) -> list[Path]:
    """Move a cell's missing files into its directory, if its captures are the same."""
    outcome = again.read_run_outcome()
    if outcome.outcome is not Outcome.COMPLETED:
        raise StoreError(f"{kept.root.name}: {_ended(outcome)}, so that there are no captures to keep")
    then, now = read_json(kept.packets, dict[str, str]), capture_digests(again.capture)
    other = sorted(name for name in then.keys() | now.keys() if then.get(name) != now.get(name))
    if other:
        raise StoreError(
            f"{kept.root.name}: its captures are not those of the run ({', '.join(other)}): nothing was kept. "
            f"The run had the kernel {_named((run.manifest.kernel_release, run.manifest.kernel_sha256))}, and netwarp "
            f"{run.manifest.git_commit or run.manifest.netwarp_version}"
        )
    for folder in (again.capture, again.apps):
        for path in sorted(folder.iterdir()):
            _put(path, kept.root / folder.name / path.name)
    for path in (compressed.packed(again.init_log), again.steps):
        _put(path, kept.root / path.name)
    return sorted(kept.capture.iterdir())


def _put(path: Path, target: Path) -> None:
    if not target.exists():
        target.parent.mkdir(exist_ok=True)
        os.replace(path, target)


def _ended(outcome: CellOutcome) -> str:
    return f"it ended {outcome.outcome} now ({outcome.reason})"


def verify(
    run_dir: str | Path,
    reference: str | Path | None = None,
    *,
    jobs: int | None = None,
    progress: Progress = no_progress,
) -> Verified:
    """Compare the captures of a run with those of a reference run, or (None) with those that its cells give now.

    Raises SpecError if the runs have no cell in common or did not run in virtual time; BackendUnavailable, StoreError.
    """
    run = open_run(run_dir)
    if reference is not None:
        golden = open_run(reference)
        theirs = {cell.id for cell in golden.plan.cells}
        common = [cell for cell in run.plan.cells if cell.id in theirs]
        if not common:
            raise SpecError(f"{run.path} and {golden.path} have no cell in common: nothing was compared")
        differences = {cell.id: _difference(cell, run.directory, golden.directory) for cell in common}
        apart = {cell.id for cell in run.plan.cells} ^ theirs
        differences |= dict.fromkeys(sorted(apart), "is in one of the runs only")
        return _verified(differences, (_kernel(golden), _kernel(run)), golden, run.directory, run.manifest.backend)
    with locked(run.directory):
        again = _run_again(run, run.plan.cells, jobs, progress)
        try:
            differences = {cell.id: _difference(cell, again, run.directory) for cell in run.plan.cells}
            ran = [cell for cell in _of_the_same_levels(run.plan, differences) if ran_to_its_end(again.cell(cell.id))]
            analyze_cells(ran, again, jobs=jobs or os.cpu_count() or 1)
            kernels = (_kernel(run), _named(with_kernels(choose("virtual"), run.plan.cells).identity))
            return _verified(differences, kernels, run, again, run.manifest.backend)
        finally:
            run.directory.clear_partial()


def _verified(
    differences: Mapping[str, Difference], kernels: tuple[str, str], golden: Run, now: RunDir, backend: str
) -> Verified:
    equal = tuple(cell_id for cell_id, words in differences.items() if not words)
    differ = {cell_id: words for cell_id, words in differences.items() if words}
    cells = _of_the_same_levels(golden.plan, differences)
    if not cells:
        return Verified(kernels, equal, differ)
    plan = msgspec.structs.replace(golden.plan, cells=cells)
    lateness = max(lateness_s(name) for name in (backend, golden.manifest.backend))
    try:
        numbers = compare(collect(plan, golden.directory), collect(plan, now), lateness)
    except (CaptureError, StoreError) as error:
        return Verified(kernels, equal, differ, without_numbers=str(error))
    return Verified(kernels, equal, differ, numbers)


def _of_the_same_levels(plan: Plan, differences: Mapping[str, Difference]) -> tuple[Cell, ...]:
    """The cells that differ, and their other repetitions, which the interval of a number needs."""
    levels = {frozenset(levels_of(cell)) for cell in plan.cells if differences.get(cell.id)}
    return tuple(cell for cell in plan.cells if frozenset(levels_of(cell)) in levels)


def _kernel(run: Run) -> str:
    return _named((run.manifest.kernel_release, run.manifest.kernel_sha256))


def _difference(cell: Cell, run: RunDir, reference: RunDir) -> Difference:
    """The difference of a cell in two runs; "": its captures are equal."""
    here, there = run.cell(cell.id), reference.cell(cell.id)
    try:
        ends = [directory.read_run_outcome() for directory in (here, there)]
    except StoreError as error:
        return f"was not finished ({error})"
    if ends[0].outcome is not ends[1].outcome:
        return f"ended {ends[0].outcome} here, {ends[1].outcome} there: {ends[0].reason or ends[1].reason}"
    digests = [_digests(directory) for directory in (here, there)]
    if not any(digests):
        return f"has no captures to compare: it ended {ends[0].outcome} in both{_because(ends[0])}"
    if digests[0] == digests[1]:
        return ""
    for name in sorted(digests[0].keys() | digests[1].keys()):
        if digests[0].get(name) != digests[1].get(name):
            return f"capture {name}: {_first(cell, name, here, there)}"
    return ""


def _because(outcome: CellOutcome) -> str:
    return f" ({outcome.reason})" if outcome.reason else ""


def _digests(directory: CellDir) -> dict[str, str]:
    """Digests of the existing captures, otherwise those that the analysis kept."""
    there = capture_digests(directory.capture)
    return there or (read_json(directory.packets, dict[str, str]) if directory.packets.exists() else {})


def _first(cell: Cell, name: str, here: CellDir, there: CellDir) -> str:
    capture = next((known for known in cell.captures if f"{known.node}-{known.link}" == name), None)
    files = [
        None if capture is None else capture_file(place.root, capture.node, capture.link) for place in (here, there)
    ]
    if files[0] is None or files[1] is None:
        return (
            "its digest differs, and the captures of one run are not there to be looked into (netwarp archive replay)"
        )
    try:
        difference = difference_of_files(files[0], files[1])
        t0_ns = read_cell_records(here.init_log).ready.t0_realtime_ns
    except CaptureError as error:
        return str(error)
    return "equal packets in files that differ" if difference is None else difference.words(t0_ns)
