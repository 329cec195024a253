"""Runs cells in order to compare them: on two back ends, or again, to restore removed captures or to hold a run against
what its cells give now (a golden run).
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from ..core.errors import SpecError, StoreError
from ..core.schedule_levels import UNDISTURBED
from ..core.types import Cell, Outcome
from ..core.units import counted
from ..experiment import AnyExperiment, Spec, load_experiment
from ..plan.schedules import scheduled_cells
from ..plan.shards import shard_of
from ..plan.types import Plan
from ..results.run_comparison import RunComparison, named_kernel
from ..sandbox.choose import choose, with_kernels
from ..sandbox.own_programs import refuse_programs
from ..store import compressed
from ..store.packing import unpack_one
from ..store.packs import archives, cell_bytes
from ..store.run_dir import RunDir, locked, write_json
from ..store.run_locations import check_out, new_directory
from .analysis import tabulate
from .compare import (
    cells_of_differing_levels,
    compare_cell,
    compare_cells,
    judge_agreement,
    of_differing_cells,
    side_of,
)
from .events import CellFinished, CellsFinished, CellsStarted, Notice, Progress, no_progress
from .execute import analyze_cells, execute
from .planning import Where, plan_experiment
from .run_directory import Run, late_cells, open_run, ran_to_its_end
from .running import Means, begin, check_jobs, end, ended_early, run_cells
from .stored_files import as_found, check_stored

REPETITIONS = 5
"""The default of `agree`: with fewer draws a difference of random numbers cannot be told from chance."""


def agree_backends(
    experiment: AnyExperiment,
    backends: tuple[str, str],
    *,
    sets: Mapping[str, str] | None = None,
    seed: int | None = None,
    repetitions: int | None = None,
    only: Sequence[str] = (),
    where: Where = (),
    jobs: int | None = None,
    inventory: str | Path | None = None,
    allow_programs: bool = False,
    out: str | Path | None = None,
    resume: bool = False,
    arguments: Sequence[str] = (),
    progress: Progress = no_progress,
) -> RunComparison:
    """Run the cells of a spec on two back ends, and compare every number of the second with the first.

    repetitions: default 5. inventory: of the back end hosts; allow_programs: as of `run`. out: the directory for
    both runs (default: results/agreement/<name>/<time>/). resume: continue the interrupted comparison in `out`. The
    other arguments: as for `run`. Raises what `run` raises.
    """
    if resume and out is None:
        raise SpecError("--resume wants --out: the directory of the interrupted one")
    check_jobs(jobs)
    spec = load_experiment(experiment, sets=sets)
    whole = plan_experiment(
        spec, seed=seed, repetitions=REPETITIONS if repetitions is None else repetitions, only=only, where=where,
        backend=backends[0], progress=progress,
    )  # fmt: skip
    growing = sorted({each.factor for each in scheduled_cells(whole)})
    if growing:
        raise SpecError(
            f"compare backends: the levels of {', '.join(growing)} follow from the packets of a run, which two back "
            f"ends need not share: --where {growing[0]}={UNDISTURBED} compares the undisturbed cells, and the "
            "spec.toml of a counterexample one schedule"
        )
    drawn = tuple(cell for cell in whole.cells if cell.random or cell.repetition == 0)
    machines = None if inventory is None else Path(inventory)
    for name in backends:  # before anything runs: may raise BackendUnavailable
        with_kernels(
            choose(name, machines if name == "hosts" else None, allow_programs=allow_programs), drawn
        ).backend.close()
    if out is not None:
        check_out(Path(out), resume, backends)
    folder = Path(out) if out is not None else new_directory(Path("results") / "agreement" / whole.name).root
    runs, again = [], []
    with locked(RunDir(folder)):
        for name in backends:
            # what is not random is the same again in virtual time; on the wall clock its repetitions are its spread
            plan = msgspec.structs.replace(whole, cells=drawn) if name == "virtual" else whole
            directory = RunDir(folder / name)
            try:
                again.append(
                    _run_side(spec, plan, name, machines, allow_programs, directory, jobs, resume, arguments, progress)
                )
                runs.append(open_run(directory.root))
            except (KeyboardInterrupt, OSError, StoreError) as error:
                # `folder` is what goes on
                ended_early(error, Run(RunDir(folder), plan))
    return judge_agreement((runs[0], runs[1]), backends, (again[0], again[1]), folder)


def _run_side(
    spec: Spec,
    plan: Plan,
    name: str,
    machines: Path | None,
    allow_programs: bool,
    directory: RunDir,
    jobs: int | None,
    resume: bool,
    arguments: Sequence[str],
    progress: Progress,
) -> tuple[str, ...]:
    """Run the unfinished cells of one side; returns the cells that were rerun, and why. Raises BackendUnavailable, or
    KeyboardInterrupt with the finished cells kept.
    """
    chosen = with_kernels(
        choose(name, machines if name == "hosts" else None, allow_programs=allow_programs), plan.cells
    )
    cores = os.cpu_count() or 1
    jobs = (jobs or 1) if chosen.backend.wall_clock else min(jobs or cores, cores)
    jobs = jobs if chosen.backend.on_this_machine else 1
    progress(Notice(f"{counted(len(plan.cells), 'cell')} on {name}, {jobs} at once"))
    with locked(directory), contextlib.closing(chosen.backend):
        started = time.monotonic()
        manifest = begin(resume, spec, plan, directory, chosen, jobs, arguments)
        means = Means(directory, chosen, jobs, progress)
        run_cells(plan, means)
        late = late_cells(plan, directory)
        if late:
            for cell_id, reason in late.items():
                progress(Notice(f"rerunning cell {cell_id}, the host was late: {reason}"))
                directory.set_aside(cell_id)
            run_cells(plan, means)
        end(directory, manifest, None if resume else round(time.monotonic() - started, 3))
        tabulate(plan, directory)
    return tuple(f"{cell_id}: {reason}" for cell_id, reason in late.items())


def replay(
    run_dir: str | Path, cells: Sequence[str], *, allow_programs: bool = False, progress: Progress = no_progress
) -> list[Path]:
    """Run cells again and restore their removed captures and other files; returns the captures.

    If a cell's new captures differ from those of the run, its files are discarded. allow_programs: run also programs
    that the run brings, which is refused otherwise; no cell with one is run as root. Raises SpecError,
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
    again_cells = [known[cell_id] for cell_id in dict.fromkeys(cells)]
    programs = refuse_programs(again_cells, run.path, allowed=allow_programs)
    captures: list[Path] = []
    with locked(run.directory):
        packed = archives(run.directory.cells)
        for cell_id in dict.fromkeys(cells):
            if cell_id in packed and not (run.directory.cells / cell_id).is_dir():
                unpack_one(run.directory, cell_id, cell_bytes(packed[cell_id], cell_id))
        try:
            again = _run_again(run, again_cells, None, progress, never_root=programs)
            for cell_id in dict.fromkeys(cells):
                captures += _restore(run, again, cell_id)
        finally:
            run.directory.clear_partial()
    return captures


def _run_again(run: Run, cells: Sequence[Cell], jobs: int | None, progress: Progress, *, never_root: bool) -> Run:
    """Run cells of a run in its cells/.partial. never_root: a cell that root would have to run fails.

    Raises SpecError if they cannot be expected to give equal captures.
    """
    if run.manifest.backend != "virtual":
        raise SpecError(
            f"{run.path}: ran on {run.manifest.backend}: only in virtual time the same cell gives the same captures"
        )
    chosen = with_kernels(choose("virtual"), run.plan.cells)
    chosen.backend.never_root = never_root
    release, sha256 = chosen.identity
    manifest = msgspec.structs.replace(run.manifest, kernel_release=release, kernel_sha256=sha256)
    if (now := named_kernel(manifest)) != (then := named_kernel(run.manifest)):
        progress(Notice(f"this is another kernel than the run's: {now}, not {then}"))
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
    write_json(place.manifest, manifest)
    return Run(place, msgspec.structs.replace(run.plan, cells=tuple(cells)))


def _restore(run: Run, now: Run, cell_id: str) -> list[Path]:
    """Move a cell's missing files into its directory, if its captures are the same."""
    again, kept = now.directory.cell(cell_id), run.directory.cell(cell_id)
    outcome = again.read_run_outcome()
    if outcome.outcome is not Outcome.COMPLETED:
        why = f"it ended {outcome.outcome} now ({outcome.reason})"
        raise StoreError(f"{cell_id}: {why}, so that there are no captures to keep")
    pair = compare_cell((cell_id, cell_id), run.directory, now.directory, words=False)
    if pair.status != "equal":
        raise StoreError(
            f"{cell_id}: its captures are not those of the run ({', '.join(pair.captures) or pair.words}): nothing was "
            "kept. "
            f"The run had the kernel {named_kernel(run.manifest)}, and netwarp "
            f"{run.manifest.git_commit or run.manifest.netwarp_version}"
        )
    sources = [*sorted(again.capture.iterdir()), *sorted(again.apps.iterdir())]
    for path in (*sources, compressed.packed(again.init_log), again.steps):
        target = kept.root / path.relative_to(again.root)
        if not target.exists():
            target.parent.mkdir(exist_ok=True)
            path.replace(target)
    return sorted(kept.capture.iterdir())


def verify(
    run_dir: str | Path,
    reference: str | Path | None = None,
    *,
    shard: tuple[int, int] | None = None,
    jobs: int | None = None,
    allow_programs: bool = False,
    never_root: bool = False,
    progress: Progress = no_progress,
) -> RunComparison:
    """Compare the captures of a run (B) with those of a reference run (A), or (None) those of a run (A) with those that
    its cells give now (B); and where captures differ, the numbers of those cells. shard: (1, 10) runs a tenth of them.
    allow_programs: accept a run (or a reference) that brings programs, which is refused otherwise. never_root: a cell
    that root would have to run fails; so it is wherever there are programs.

    Raises SpecError if the runs have no cell in common or did not run in virtual time; BackendUnavailable, StoreError.
    """
    run = whole = open_run(run_dir)
    stored = as_found(run if reference is None else open_run(reference))
    if shard is not None:
        if reference is not None:
            raise SpecError("--shard is of a run that is run again, not of two runs that are there")
        run = Run(run.directory, shard_of(run.plan, *shard))
    if reference is not None:
        golden = open_run(reference)
        refuse_programs(golden.plan.cells, golden.path, allowed=allow_programs)
        pairs = tuple(compare_cells(golden, run))
        if all(pair.a is None or pair.b is None for pair in pairs):
            raise SpecError(f"{run.path} and {golden.path} have no cell in common: nothing was compared")
        numbers, why = of_differing_cells(golden, run, pairs)
        found = RunComparison(side_of(golden, "A"), side_of(run, "B"), (), pairs, numbers, why)
        return replace(found, stored=check_stored(golden, stored))
    programs = refuse_programs(run.plan.cells, run.path, allowed=allow_programs)
    with locked(run.directory):
        try:
            now = _run_again(run, run.plan.cells, jobs, progress, never_root=never_root or programs)
            pairs = tuple(compare_cells(run, now))
            of_levels = cells_of_differing_levels(run, pairs)
            equal = {pair.a for pair in pairs if pair.status == "equal"}
            equal |= {cell.id for cell in of_levels}
            chosen = [cell for cell in run.plan.cells if cell.id in equal]
            ran = [cell for cell in chosen if ran_to_its_end(now.directory.cell(cell.id))]
            analyze_cells(ran, now.directory, jobs=jobs or os.cpu_count() or 1)
            numbers, why = of_differing_cells(run, now, pairs)
            found = RunComparison(side_of(run, "A"), side_of(now, "B"), (), pairs, numbers, why)
            return replace(found, stored=check_stored(whole, stored, now, found))
        finally:
            run.directory.clear_partial()
