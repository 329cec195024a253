"""`netwarp run`: spec -> plan -> cells -> tables -> report."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import time
from collections import Counter
from pathlib import Path

import msgspec

from ..core import invocation
from ..core.errors import SpecError, StoreError
from ..core.types import Cell, CellOutcome, Outcome
from ..engine.execute import execute
from ..engine.stages import Results, analyze_all, analyze_one, collect, report, tabulate
from ..experiment import Spec, load_spec
from ..plan import make_plan
from ..plan.changes import plan_changes
from ..plan.types import Plan
from ..sandbox.built_programs import program_digests
from ..sandbox.choose import BACKENDS, Chosen, choose
from ..store.manifest import Manifest, new_manifest, now_utc
from ..store.run_dir import RunDir, locked, no_room, read_json, write_json
from ..store.run_locations import choose_directory, link_latest
from . import summary
from .calibrate import calibration_for
from .progress import RunProgress
from .sysctls import kernel_sysctls

EXIT_OK, EXIT_INCOMPLETE, EXIT_INTERRUPTED = 0, 1, 130


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser("run", help="run an experiment and make its tables and report")
    add_plan_arguments(parser)
    parser.add_argument(
        "--backend",
        default="auto",
        choices=BACKENDS,
        help="where cells run; virtual: a guest in virtual time; guest: one on the wall clock (of the distribution's "
        "kernel where none is built); netns: namespaces on this machine's own kernel; hosts: not built yet; "
        "auto (default): the first of virtual, netns, guest that can run",
    )
    parser.add_argument("--jobs", type=int, help="cells at once (default: cores; on the wall clock 1)")
    parser.add_argument("--out", type=Path, help="run directory (default: results/<name>/<UTC time>/)")
    parser.add_argument("--resume", action="store_true", help="go on with an interrupted run (--out, or the latest)")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the summary")
    parser.add_argument("--no-report", action="store_true", help="stop after the tables")
    parser.set_defaults(run=run)


def add_plan_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments that choose cells, shared with `netwarp plan`."""
    parser.add_argument("spec", metavar="SPEC", nargs="?", help="a spec file, or a folder name under experiments/")
    parser.add_argument("--seed", type=int, help="overrides the spec's; repetition k adds k")
    parser.add_argument("--repetitions", type=int, help="overrides the spec's")
    parser.add_argument("--only", action="append", default=[], metavar="EXPERIMENT", help="only this experiment")
    parser.add_argument(
        "--where", action="append", default=[], metavar="FACTOR=LEVEL", help="only cells of this level; several add up"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="set a parameter or a dotted key of the spec"
    )


def pairs(texts: list[str], option: str) -> list[tuple[str, str]]:
    """["a=b"] -> [("a", "b")]; raises SpecError on anything else."""
    found: list[tuple[str, str]] = []
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise SpecError(f"{option} {text}: wants key=value, e.g. {option} outage='10 s'")
        found.append((key.strip(), value.strip()))
    return found


def plan_of(args: argparse.Namespace, backend: str | None) -> tuple[Spec, Plan]:
    """The spec and the plan the arguments ask for; raises SpecError.

    backend: whose kernel must know the sysctls of the spec; None: that is not known yet.
    """
    if args.spec is None:
        run, example = invocation.command("run", "choi2009"), invocation.command("plan", "--example")
        raise SpecError(f"which experiment? e.g. `{run}`; `{example}` prints a spec")
    spec = load_spec(args.spec, sets=dict(pairs(args.set, "--set")))
    plan = make_plan(
        spec,
        seed=args.seed,
        repetitions=args.repetitions,
        only=args.only,
        where=pairs(args.where, "--where"),
        kernel=None if backend is None else lambda: kernel_sysctls(backend),
    )
    return spec, plan


def run(args: argparse.Namespace) -> int:
    """Run; the exit status of the contract."""
    if args.jobs is not None and args.jobs < 1:
        raise SpecError(f"--jobs {args.jobs}: at least 1")
    spec, plan = plan_of(args, args.backend)
    progress = RunProgress(plan.cells)
    chosen = choose(args.backend, progress.virtual)
    if chosen.why:
        print(f"netwarp: {chosen.why}", file=sys.stderr)
    jobs = args.jobs or (1 if chosen.backend.wall_clock else os.cpu_count() or 1)
    directory = choose_directory(args.out, args.resume, plan)
    with locked(directory):
        started = time.monotonic()
        try:
            manifest = open_run(args.resume, spec, plan, directory, chosen, jobs)
            run_cells(plan, directory, chosen, jobs, progress)
            wall_s = None if args.resume else round(time.monotonic() - started, 3)
            calibration = calibration_for(chosen, jobs, directory.partial / "calibration")
            directory.clear_partial()
            write_json(directory.manifest, msgspec.structs.replace(manifest, ended_utc=now_utc(), wall_s=wall_s))
            if calibration is not None:
                write_json(directory.calibration, calibration)
            results = tabulate(plan, directory)
            page = None if args.no_report else report(directory)
        except KeyboardInterrupt:
            say_stopped("interrupted", args, directory, plan)
            return EXIT_INTERRUPTED
        except (OSError, StoreError) as error:
            if not no_room(error):
                raise
            say_stopped(f"{error}; nothing more was run. Make room first", args, directory, plan)
            if args.json:
                print(json.dumps(as_json(directory, collect(plan, directory))))
            else:
                print(directory.root)
            return EXIT_INCOMPLETE
    link_latest(directory, plan)
    incomplete = sum(1 for outcome in results.outcomes.values() if outcome.outcome is not Outcome.COMPLETED)
    if args.json:
        print(json.dumps(as_json(directory, results)))
    else:
        wall = None if args.resume else time.monotonic() - started
        summary.print_summary(plan, directory, results, page, wall_s=wall)
    return EXIT_INCOMPLETE if incomplete or len(results.outcomes) < len(plan.cells) else EXIT_OK


def run_cells(plan: Plan, directory: RunDir, chosen: Chosen, jobs: int, progress: RunProgress) -> None:
    """Run what is left of a plan, each cell analysed as it ends; then derive what an earlier run left underived."""
    finished = directory.finished()
    progress.skip(finished)
    with progress:

        def after(cell: Cell, outcome: CellOutcome) -> None:
            analyze_one(directory.cell(cell.id))
            progress.finished(cell, outcome)

        execute(plan.cells, chosen.backend, directory, jobs=jobs, finished=after)
    analyze_all(plan, directory, jobs, anew=False)


def say_stopped(why: str, args: argparse.Namespace, directory: RunDir, plan: Plan) -> None:
    """On stderr: why a run stopped before its end, what is kept (a FAILED cell is run again), how to go on."""
    outcomes = [directory.cell(cell_id).read_outcome().outcome for cell_id in directory.finished()]
    done = len(outcomes) - outcomes.count(Outcome.FAILED)
    print(
        f"netwarp: {why}; {done} of {len(plan.cells)} cells are kept in {directory.root}\n"
        f"netwarp: go on with: {resuming(args, directory.root)}",
        file=sys.stderr,
    )


def resuming(args: argparse.Namespace, out: Path) -> str:
    """The command of these arguments with what makes it go on: it works as typed, in the same directory."""
    options: list[object] = ["--out", out] if args.out is None else []
    return invocation.more(args.typed, *options, *([] if args.resume else ["--resume"]))


def open_run(resume: bool, spec: Spec, plan: Plan, directory: RunDir, chosen: Chosen, jobs: int) -> Manifest:
    """Write plan.json and manifest.json, or check that an interrupted run was of the same plan and kernel."""
    if directory.plan.exists():
        if not resume:
            raise SpecError(
                f"{directory.root}: holds a run already; --resume goes on with it, another --out starts a new one"
            )
        before = read_json(directory.plan, Plan)
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
            raise SpecError(
                f"{directory.root}: its cells ran with other programs ({', '.join(changed)}); start a new run"
            )
        rerun_failed(directory)
        return manifest
    if directory.cells.exists():
        raise StoreError(f"{directory.root}: has cells but no plan.json; it is not a run of netwarp's, or was damaged")
    manifest = new_manifest(
        spec=plan.name,
        spec_path=spec.path,
        spec_sha256=hashlib.sha256(spec.path.read_bytes()).hexdigest(),
        arguments=tuple(sys.argv[1:]),
        seed=plan.seed,
        repetitions=plan.repetitions,
        backend=chosen.backend.name,
        jobs=jobs,
        kernel=chosen.identity,
        kernel_source="" if chosen.kernel is None else chosen.kernel.source,
        programs=program_digests(),
    )
    write_json(directory.manifest, manifest)
    write_json(directory.plan, plan)
    return manifest


def rerun_failed(directory: RunDir) -> None:
    """A resumed run tries FAILED cells again (a full disk, a killed guest); every other outcome stands.

    What a failed cell left is kept as cells/.failed/<id>.<number>.
    """
    for cell_id in directory.finished():
        cell = directory.cell(cell_id)
        if cell.read_outcome().outcome is Outcome.FAILED:
            directory.set_aside(cell_id)


def as_json(directory: RunDir, results: Results) -> dict[str, object]:
    """The object of --json."""
    return {
        "run_dir": str(directory.root),
        "cells": dict(Counter(str(outcome.outcome) for outcome in results.outcomes.values())),
        "claims": dict(Counter(row["verdict"] for row in summary.read_csv(directory.tables / "claims.csv"))),
    }
