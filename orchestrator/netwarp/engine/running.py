"""Runs an experiment: plan, cells, tables, report."""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import msgspec

from ..core import invocation
from ..core.built_programs import program_digests
from ..core.errors import DiskFull, SpecError, StoreError
from ..core.types import Cell, Outcome
from ..experiment import AnyExperiment, Spec, load_experiment
from ..experiment.load import SPEC_NAME
from ..plan.changes import plan_changes
from ..plan.schedules import undisturbed
from ..plan.types import Plan
from ..present.pages.build import make_report
from ..sandbox.choose import Chosen, choose, with_kernels
from ..sandbox.own_programs import programs_notice
from ..store.conclusion import Conclusion, tables_digest, write_conclusion
from ..store.digests import changed_in_cells
from ..store.manifest import Manifest, new_manifest, now_utc
from ..store.packing import PACK_ABOVE, pack_run
from ..store.plan_file import keep_texts, read_plan, write_outputs, write_plan
from ..store.run_dir import RunDir, locked, no_room, read_json, write_json
from ..store.run_locations import choose_directory, link_latest
from .analysis import analyze_all, tabulate
from .calibration import calibration_for
from .cell_tasks import Keep
from .cluster_files import analyser_here
from .dask_workers import LOCAL, Executor, need_scheduler, parse_executor
from .data_frames import need_polars
from .events import CellFinished, CellsFinished, CellsStarted, Notice, Progress, no_progress
from .execute import execute
from .later_outputs import texts_of
from .packet_schedules import grown, to_expand, write_counterexamples
from .planning import Where, level_pairs, plan_experiment
from .run_directory import Run, late_cells

Conclude = Callable[[Run], Conclusion]
"""Of a run whose tables are there, and whose report is not yet made."""


class RunInterrupted(KeyboardInterrupt):
    """SIGINT, SIGTERM or SIGHUP stopped a run; `run` holds its finished cells; with resume=True it goes on."""

    def __init__(self, run: Run) -> None:
        super().__init__(f"interrupted; {run.path} keeps what is finished")
        self.run = run


class RunOutOfSpace(DiskFull):
    """The disk was full; `run` holds the finished cells; with resume=True it goes on."""

    def __init__(self, run: Run, why: str) -> None:
        super().__init__(why)
        self.run = run


def run(
    experiment: AnyExperiment,
    *,
    sets: Mapping[str, str] | None = None,
    seed: int | None = None,
    repetitions: int | None = None,
    only: Sequence[str] = (),
    where: Where = (),
    shard: tuple[int, int] | None = None,
    backend: str = "auto",
    inventory: str | Path | None = None,
    allow_programs: bool = False,
    executor: str = "local",
    jobs: int | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    keep: Keep = "all",
    pack: bool | None = None,
    report: bool = True,
    parquet: bool = False,
    conclude: Conclude | None = None,
    arguments: Sequence[str] | None = None,
    progress: Progress = no_progress,
) -> Run:
    """Run an experiment, analyse its cells, write its tables and report.

    experiment: as for `load_experiment`; one without a file is kept in the run, as spec/spec.toml. sets, seed,
    repetitions, only, where, shard: as for `plan_experiment`. backend: auto, virtual, guest, netns, or hosts with
    inventory, a file that Ansible reads; allow_programs: it may name programs that run here. executor: local (worker
    processes), dask (a cluster of its own on this machine) or dask:ADDRESS of a scheduler. jobs: cells at once
    (default: cores; on the wall clock 1). out: the run directory (default: results/<name>/<UTC time>/). resume: go on
    with an interrupted run (`out`, or the latest of this plan). keep: of a cell that was analysed and COMPLETED, beside
    what is derived: "all"; "captures"; "tables", neither captures nor records, which `replay` makes again. pack: put
    finished cells into a few archives (default: for more than 10,000 cells), which `unpack` opens. report: make the
    report. parquet: write the tables as Parquet too (needs polars). conclude: what the finished run shows, which its
    report begins with (conclusion.json). arguments: the words of the command line, for the manifest.

    Raises SpecError (nothing was run), BackendUnavailable, RunInterrupted, RunOutOfSpace, StoreError.
    """
    check_jobs(jobs)
    where_to = parse_executor(executor, jobs, backend)
    if parquet:
        need_polars()
    spec = load_experiment(experiment, sets=sets)
    plan = plan_experiment(
        spec,
        seed=seed,
        repetitions=repetitions,
        only=only,
        where=where,
        shard=shard,
        backend=backend,
        progress=progress,
    )
    if where_to.dask and keep != "all" and to_expand(plan):
        raise SpecError(
            f"--keep {keep} with --executor dask: schedules of packets grow from captures, which the workers would "
            "remove; leave --keep out, or run with --executor local"
        )
    return run_plan(
        spec, plan, run_rounds, backend=backend, inventory=inventory, allow_programs=allow_programs, executor=where_to,
        jobs=jobs, out=out, resume=resume, keep=keep, pack=pack, report=report, parquet=parquet, conclude=conclude,
        progress=progress,
        arguments=lambda file: arguments or _equivalent(
            file, sets or {}, seed, repetitions, only, where, shard, backend, executor
        ),
    )  # fmt: skip


@dataclass(frozen=True)
class Means:
    """Where and with what the cells of a plan run. jobs: at once. keep, pack: as for `run`."""

    directory: RunDir
    chosen: Chosen
    jobs: int
    progress: Progress
    keep: Keep = "all"
    executor: Executor = LOCAL
    pack: bool | None = False


def run_plan(
    spec: Spec,
    plan: Plan,
    rounds: Callable[[Plan, Means], Plan],
    *,
    arguments: Callable[[Path], Sequence[str]],
    later: Sequence[Cell] = (),
    backend: str = "auto",
    inventory: str | Path | None = None,
    allow_programs: bool = False,
    executor: Executor = LOCAL,
    jobs: int | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    keep: Keep = "all",
    pack: bool | None = None,
    report: bool = True,
    parquet: bool = False,
    conclude: Conclude | None = None,
    progress: Progress = no_progress,
) -> Run:
    """Run a plan by rounds, which run its cells and those that follow from them, and return the plan with all of them.
    arguments: the words of the command line, given the file of the spec. later: cells that the rounds may add. The
    rest, and what it raises, as `run`.
    """
    chosen = with_kernels(
        choose(backend, None if inventory is None else Path(inventory), allow_programs=allow_programs),
        later or plan.cells,
    )
    if chosen.why:
        progress(Notice(chosen.why))
    if brought := programs_notice(later or plan.cells, chosen.backend.user):
        progress(Notice(brought))
    jobs = jobs or (1 if chosen.backend.wall_clock else os.cpu_count() or 1)
    if not chosen.backend.on_this_machine and (jobs > 1 or executor != LOCAL):
        chosen.backend.close()
        raise SpecError(
            "the machines of an inventory run one cell at a time, for this machine: no --jobs, no --executor"
        )
    chosen.backend.check_place(Path("results" if out is None else out))
    if executor.address is not None:  # before there is a run directory
        need_scheduler(executor.address)
    directory = choose_directory(None if out is None else Path(out), resume, plan)
    with locked(directory), contextlib.closing(chosen.backend):
        started = time.monotonic()
        try:
            manifest = begin(
                resume, spec, plan, directory, chosen, jobs, arguments(spec.path or directory.spec / SPEC_NAME)
            )
            changed = changed_in_cells(directory, {cell_id: cell_id for cell_id in directory.finished()})
            plan = rounds(plan, Means(directory, chosen, jobs, progress, keep, executor, pack))
            wall_s = None if resume else round(time.monotonic() - started, 3)
            end(directory, manifest, wall_s)
            calibration = calibration_for(chosen, jobs, directory.partial / "calibration", progress)
            if calibration is not None:
                write_json(directory.calibration, calibration)
            results = tabulate(plan, directory, parquet=parquet, changed=changed)
            for replay in write_counterexamples(spec, results, directory):
                progress(Notice(f"counterexample: {directory.counterexamples / replay.name}: {replay.level}"))
            if conclude is not None:
                said = conclude(Run(directory, plan, None, wall_s, results))
                write_conclusion(directory, msgspec.structs.replace(said, tables=tables_digest(directory)))
            page = make_report(directory, tuple(changed)) if report else None
        except (KeyboardInterrupt, OSError, StoreError) as error:
            ended_early(error, Run(directory, read_plan(directory) if directory.plan.exists() else plan))
    link_latest(directory, plan)
    return Run(directory, plan, page, None if resume else time.monotonic() - started, results)


def check_jobs(jobs: int | None) -> None:
    """Raise SpecError if `jobs` is not a possible number of cells at once."""
    if jobs is not None and jobs < 1:
        raise SpecError(f"--jobs {jobs}: at least 1")


def ended_early(error: BaseException, run: Run) -> NoReturn:
    """Raise the exception for a run that ended early, with its finished cells; raise any other error unchanged."""
    if isinstance(error, KeyboardInterrupt):
        raise RunInterrupted(run) from error
    if no_room(error):
        raise RunOutOfSpace(run, str(error)) from error
    raise error


def run_cells(plan: Plan, means: Means, *, pack: bool = False, grown_from: Collection[str] = ()) -> None:
    """Run the unfinished cells of a plan; each is analysed when it ends. Then analyse cells that an earlier run left
    unanalysed. pack: put them into archives.
    """
    directory, progress = means.directory, means.progress
    progress(CellsStarted(plan.cells, frozenset(directory.finished())))
    try:
        execute(
            plan.cells, means.chosen.backend, directory, jobs=means.jobs, analyze=True, keep=means.keep,
            pack=pack, executor=means.executor, progress=progress, grown_from=grown_from,
            finished=lambda cell, outcome: progress(CellFinished(cell, outcome)),
        )  # fmt: skip
    finally:
        progress(CellsFinished())
    analyze_all(plan, directory, means.jobs, anew=False)
    if pack:
        pack_run(directory)


def run_rounds(plan: Plan, means: Means) -> Plan:
    """Run a plan and the schedules of packets that follow from its cells, round by round. Returns
    the plan as it has grown, which is in the run directory too.
    """
    tried: set[str] = set()
    while True:
        growing = to_expand(plan)
        packs = growing <= tried and (len(plan.cells) > PACK_ABOVE if means.pack is None else means.pack)
        run_cells(plan, means, pack=packs, grown_from=growing)
        if growing <= tried:
            return plan
        plan = grown(plan, means.directory, tried, means.progress)
        tried |= growing
        write_plan(means.directory, plan)


def end(directory: RunDir, manifest: Manifest, wall_s: float | None) -> None:
    """Called when every cell of the run has its outcome: writes the end time to the manifest."""
    directory.clear_partial()
    write_json(directory.manifest, msgspec.structs.replace(manifest, ended_utc=now_utc(), wall_s=wall_s))


def begin(
    resume: bool, spec: Spec, plan: Plan, directory: RunDir, chosen: Chosen, jobs: int, arguments: Sequence[str]
) -> Manifest:
    """Write plan.json and manifest.json, or check that the interrupted run has the same plan and kernel."""
    if directory.plan.exists():
        if not resume:
            raise SpecError(
                f"{directory.root}: holds a run already; --resume goes on with it, another --out starts a new one"
            )
        manifest = _check_same(plan, directory, chosen)
        write_outputs(directory, plan)  # other tables and claims than before do not make another run
        keep_texts(directory, texts_of(spec))
        rerun_failed(plan, directory)
        return manifest
    if directory.cells.exists():
        raise StoreError(f"{directory.root}: has cells but no plan.json; it is not a run of netwarp's, or was damaged")
    manifest = new_manifest(
        spec=plan.name,
        spec_path=spec.path or directory.spec / SPEC_NAME,
        spec_sha256=hashlib.sha256(spec.text).hexdigest(),
        arguments=tuple(arguments),
        seed=plan.seed,
        repetitions=plan.repetitions,
        backend=chosen.backend.name,
        jobs=jobs,
        kernel=chosen.identity,
        kernel_source=", ".join(build.source for build in chosen.kernels)
        or ("" if chosen.kernel is None else chosen.kernel.source),
        uml_mode=chosen.uml_mode,
        programs=program_digests(),
        software=analyser_here(),
    )
    write_json(directory.manifest, manifest)
    keep_texts(directory, texts_of(spec))
    write_plan(directory, plan)
    return manifest


def _check_same(plan: Plan, directory: RunDir, chosen: Chosen) -> Manifest:
    """The manifest of an interrupted run of this plan, back end, kernel, programs and software. Raises SpecError."""
    before = undisturbed(read_plan(directory).with_outputs(plan))
    manifest = read_json(directory.manifest, Manifest)
    if before != plan:
        differs = "".join(f"\n  {line}" for line in plan_changes(before, plan))
        raise SpecError(
            f"{directory.root}: holds a run of another plan:{differs}\n"
            f"  it was started with: {invocation.command(*manifest.arguments)}"
        )
    if manifest.backend != chosen.backend.name:
        raise SpecError(
            f"{directory.root}: its cells ran on the back end {manifest.backend}; "
            f"go on with --backend {manifest.backend}, or start a new run"
        )
    if (manifest.kernel_release, manifest.kernel_sha256) != chosen.identity:
        other = f"{manifest.kernel_release}, {manifest.kernel_sha256[:12]}"
        raise SpecError(f"{directory.root}: its cells ran on another kernel ({other}); start a new run")
    changed = [name for name, digest in program_digests().items() if manifest.programs.get(name) != digest]
    if changed:
        raise SpecError(f"{directory.root}: its cells ran with other programs ({', '.join(changed)}); start a new run")
    if differing := manifest.other_software(analyser_here()):
        raise SpecError(
            f"{directory.root}: its cells were made and analysed with other software ({', '.join(differing)}); "
            "go on with that, or start a new run"
        )
    return manifest


def rerun_failed(plan: Plan, directory: RunDir) -> None:
    """Move FAILED cells aside so that a resumed run tries them again (a full disk, a killed guest), and those that are
    INVALID only because the host was late; every other outcome stays.

    The files of such a cell are kept as cells/.failed/<id>.<number>.
    """
    late = late_cells(plan, directory)
    for cell_id in directory.finished():
        if cell_id in late or directory.cell(cell_id).read_outcome().outcome is Outcome.FAILED:
            directory.set_aside(cell_id)


def _equivalent(
    spec: Path,
    sets: Mapping[str, str],
    seed: int | None,
    repetitions: int | None,
    only: Sequence[str],
    where: Where,
    shard: tuple[int, int] | None,
    backend: str,
    executor: str,
) -> list[str]:
    """The command line that makes the same run, for the manifest."""
    words = ["run", str(spec), "--backend", backend]
    words += [] if executor == "local" else ["--executor", executor]
    for option, value in (("--seed", seed), ("--repetitions", repetitions)):
        words += [] if value is None else [option, str(value)]
    words += [] if shard is None else ["--shard", f"{shard[0]}/{shard[1]}"]
    words += [word for name in only for word in ("--only", name)]
    words += [word for factor, level in level_pairs(where) for word in ("--where", f"{factor}={level}")]
    return words + [word for key, value in sets.items() for word in ("--set", f"{key}={value}")]
