"""`netwarp run`: spec -> plan -> cells -> tables -> report."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, get_args

from ..core import invocation
from ..core.errors import SpecError
from ..engine.cell_tasks import Keep
from ..engine.events import Progress
from ..engine.planning import plan_experiment
from ..engine.run_directory import Run
from ..engine.running import RunInterrupted, RunOutOfSpace
from ..engine.running import run as run_experiment
from ..plan.shards import parse_shard
from ..plan.types import Plan
from ..sandbox.choose import BACKENDS
from . import EXIT_INTERRUPTED
from .places import new_file, new_folder
from .progress import TerminalProgress
from .summary import print_summary

EXIT_OK, EXIT_INCOMPLETE = 0, 1
T = TypeVar("T")


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser("run", example="netwarp run choi2009 --where outage='10 s' --jobs 2")
    add_plan_arguments(parser)
    add_shard_argument(parser)
    parser.add_argument(
        "--backend",
        default="auto",
        choices=BACKENDS,
        help="where cells run; virtual: a guest in virtual time; guest: one on the wall clock (of the distribution's "
        "kernel where none is built); netns: namespaces on this machine's own kernel; hosts: machines of an inventory; "
        "auto (default): the first of virtual, netns, guest that can run",
    )
    parser.add_argument(
        "--executor", default="local", metavar="WHERE",
        help="local (default): worker processes of this machine; dask: a cluster of its own on this machine; "
        "dask:ADDRESS: the workers of that dask scheduler",
    )  # fmt: skip
    add_inventory_arguments(parser)
    parser.add_argument("--jobs", type=int, metavar="N", help="cells at once (default: cores; on the wall clock 1)")
    parser.add_argument(
        "--out", type=new_folder, metavar="DIR", help="run directory (default: results/<name>/<UTC time>/)"
    )
    parser.add_argument("--resume", action="store_true", help="go on with an interrupted run (--out, or the latest)")
    parser.add_argument(
        "--keep", choices=get_args(Keep), default="all",
        help="of a cell that completed, beside what is derived: everything; captures; neither captures nor records, "
        "which `netwarp archive replay` makes again (default: all)",
    )  # fmt: skip
    parser.add_argument(
        "--pack", action=argparse.BooleanOptionalAction, default=None,
        help="finished cells into a few archives, which `netwarp archive unpack` opens "
        "(default: of more than 10,000 cells)",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the summary")
    parser.add_argument("--junit", type=new_file, metavar="FILE", help="write outcomes and verdicts as JUnit XML")
    parser.add_argument("--no-report", action="store_true", help="stop after the tables")
    parser.add_argument("--parquet", action="store_true", help="write the tables as Parquet too (needs polars)")
    parser.set_defaults(run=run)


def add_inventory_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the back end hosts, shared with `plan` and `compare backends`."""
    parser.add_argument("--inventory", type=Path, metavar="FILE", help="of hosts: machines, as Ansible knows them")
    parser.add_argument(
        "--allow-programs", action="store_true",
        help="of hosts: the inventory may name programs that run on this machine as you, for links or in place of ssh",
    )  # fmt: skip


def add_plan_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments that choose cells, shared with `netwarp plan`."""
    parser.add_argument("spec", metavar="SPEC", nargs="?", help="a spec file, or a folder name under experiments/")
    parser.add_argument("--seed", type=int, metavar="N", help="overrides the spec's; repetition k adds k")
    parser.add_argument("--repetitions", type=int, metavar="N", help="overrides the spec's")
    parser.add_argument("--only", action="append", default=[], metavar="EXPERIMENT", help="only this experiment")
    parser.add_argument(
        "--where", action="append", default=[], metavar="FACTOR=LEVEL", help="only cells of this level; several add up"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="set a parameter or a dotted key of the spec"
    )


def add_shard_argument(parser: argparse.ArgumentParser) -> None:
    """Declare --shard."""
    parser.add_argument(
        "--shard", metavar="K/N", help="every N-th of these cells, from the K-th on (netwarp archive merge)"
    )


def shard_option(args: argparse.Namespace) -> tuple[int, int] | None:
    """--shard, of commands that have it. Raises SpecError."""
    text = getattr(args, "shard", None)
    return None if text is None else parse_shard(text)


def pairs(texts: list[str], option: str) -> list[tuple[str, str]]:
    """["a=b"] -> [("a", "b")]; raises SpecError on anything else."""
    split: list[tuple[str, str]] = []
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise SpecError(f"{option} {text}: wants key=value, e.g. {option} outage='10 s'")
        split.append((key.strip(), value.strip()))
    return split


def plan_options(args: argparse.Namespace) -> dict[str, Any]:
    """The arguments that choose cells, as keyword arguments of the engine's functions. Raises SpecError."""
    if args.spec is None:
        run, example = invocation.command("run", "choi2009"), invocation.command("plan", "--example")
        raise SpecError(f"which experiment? e.g. `{run}`; `{example}` prints a spec")
    return {
        "experiment": args.spec, "sets": dict(pairs(args.set, "--set")), "seed": args.seed,
        "repetitions": args.repetitions, "only": args.only, "where": pairs(args.where, "--where"),
    }  # fmt: skip


def plan_of(args: argparse.Namespace, backend: str | None) -> Plan:
    """The plan the arguments ask for. backend: whose kernel must know the sysctls; None: they are not checked."""
    with TerminalProgress() as progress:
        return plan_experiment(**plan_options(args), shard=shard_option(args), backend=backend, progress=progress)


def run(args: argparse.Namespace) -> int:
    """Run; the exit status of the contract."""
    named: set[str] = set()

    finished = unless_stopped(
        args,
        lambda progress: run_experiment(
            **plan_options(args), shard=shard_option(args), backend=args.backend,
            inventory=args.inventory, allow_programs=args.allow_programs,
            executor=args.executor, jobs=args.jobs, out=args.out, resume=args.resume, keep=args.keep,
            pack=args.pack, report=not args.no_report, parquet=args.parquet, arguments=args.typed,
            progress=progress,
        ),
        named,
    )  # fmt: skip
    if isinstance(finished, int):
        return finished
    if args.junit is not None:
        finished.write_junit(args.junit)
    if args.json:
        print(json.dumps(as_json(finished)))
    else:
        print_summary(finished, named)
    return EXIT_OK if finished.complete else EXIT_INCOMPLETE


def unless_stopped(args: argparse.Namespace, work: Callable[[Progress], T], named: set[str] | None = None) -> T | int:
    """What `work` returns; of a run that stopped early, which is said, the exit status. named: of TerminalProgress."""
    try:
        with TerminalProgress(named) as progress:
            return work(progress)
    except RunInterrupted as stop:
        say_stopped("interrupted", args, stop.run)
        return EXIT_INTERRUPTED
    except RunOutOfSpace as stop:
        say_stopped(f"{stop}; nothing more was run", args, stop.run)
        print(json.dumps(as_json(stop.run)) if args.json else stop.run.path)
        return EXIT_INCOMPLETE


def say_stopped(why: str, args: argparse.Namespace, run: Run) -> None:
    """Prints on stderr why a run stopped early, what is kept (a FAILED cell is run again), and how to continue."""
    print(
        f"netwarp: {why}; {run.kept} of {len(run.plan.cells)} cells are kept in {run.path}\n"
        f"netwarp: go on with: {resuming(args, run.path)}",
        file=sys.stderr,
    )


def resuming(args: argparse.Namespace, out: Path) -> str:
    """The command line that continues this run; it works as typed, in the same directory."""
    options: list[object] = ["--out", out] if args.out is None else []
    return invocation.more(args.typed, *options, *([] if args.resume else ["--resume"]))


def as_json(run: Run) -> dict[str, object]:
    """The object of --json."""
    return {"run_dir": str(run.path), "cells": run.outcomes, "claims": run.verdicts}
