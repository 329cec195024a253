"""`netwarp archive merge`: merges the shards of a run, or its base and its robustness."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..engine.merging import merge_runs, take_cells
from .run import EXIT_INCOMPLETE, EXIT_OK
from .summary import print_summary


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "archive merge",
        help="make one run of all shards of a plan (netwarp run --shard K/N), or of its base and robustness",
    )
    parser.add_argument(
        "runs",
        nargs="+",
        type=Path,
        metavar="RUN",
        help="every shard, or the runs to take cells from, in any order; they stay",
    )
    parser.add_argument(
        "--spec",
        help="take the cells of this spec from whichever run has them: runs of earlier states of it, or a part each",
    )
    parser.add_argument("--out", type=Path, required=True, help="the run directory of the whole")
    parser.add_argument("--no-report", action="store_true", help="stop after the tables")
    parser.add_argument("--junit", type=Path, metavar="FILE", help="write outcomes and verdicts as JUnit XML")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """The exit status of `netwarp run`."""
    report = not args.no_report
    if args.spec is not None:
        merged = take_cells(args.spec, args.runs, out=args.out, report=report)
    else:
        merged = merge_runs(args.runs, out=args.out, report=report)
    if args.junit is not None:
        merged.write_junit(args.junit)
    print_summary(merged)
    return EXIT_OK if merged.complete else EXIT_INCOMPLETE
