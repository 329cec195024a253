"""`netwarp compare backends`: runs the same cells on two back ends and says whether their numbers agree."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..core.errors import SpecError
from ..core.invocation import command
from ..core.lines import columns
from ..core.metrics.catalogue import HEADLINE
from ..engine.compare import agree_runs
from ..engine.run_again import agree_backends
from ..engine.running import RunInterrupted, RunOutOfSpace
from ..present.captures.page_sections import claim_page
from ..present.comparison_words import amount, gap_words, interval_words, levels_words, sentences
from ..present.pages.comparison import comparison_page
from ..results.compared_numbers import OF_AGREEMENT, ComparedNumber, Comparison
from ..results.run_comparison import RunComparison
from ..results.write import csv_text
from ..sandbox.choose import BACKENDS
from ..store.run_dir import write_atomic, write_json
from . import EXIT_INTERRUPTED
from .output import make_table, plain_console, print_json, print_lines
from .places import new_file, new_folder
from .progress import TerminalProgress
from .run import add_inventory_arguments, add_plan_arguments, plan_options, resuming

SHOWN, FEW = 20, 6
DIFFER = 1


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare it."""
    parser = commands.add_parser(
        "compare backends", help="run the same cells on two back ends, and compare their numbers",
        example="netwarp compare backends physics --backends virtual,netns",
        description="Runs the cells of a spec on two back ends, or takes two runs that are there (RUN_A RUN_B), and "
        "holds every number of the second against the first within what the instrument allows.",
    )  # fmt: skip
    add_plan_arguments(parser)
    parser.add_argument("other", metavar="RUN_B", nargs="?", type=Path, help="with RUN_A for SPEC: two runs")
    parser.add_argument("--backends", metavar="A,B", help="e.g. virtual,guest (of virtual, guest, netns, hosts)")
    add_inventory_arguments(parser)
    parser.add_argument("--jobs", type=int, metavar="N", help="cells at once (default: cores; on the wall clock 1)")
    parser.add_argument(
        "--out",
        type=new_folder,
        metavar="DIR",
        help="directory for both runs (default: results/agreement/<name>/<time>/)",
    )
    parser.add_argument("--resume", action="store_true", help="go on with an interrupted one (wants --out)")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the summary")
    parser.add_argument("--html", type=new_file, metavar="FILE", help="the page (default: <out>/agreement.html)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """0: nothing differs; 1: something does."""
    if args.html is not None:
        claim_page(args.html)
    if args.other is not None:
        judged, out = _two_runs(args), args.out
    else:
        try:
            judged = _two_backends(args)
        except RunInterrupted as stop:
            print(f"netwarp: interrupted; go on with: {resuming(args, stop.run.path)}", file=sys.stderr)
            return EXIT_INTERRUPTED
        except RunOutOfSpace as stop:
            print(f"netwarp: make room, then go on with: {resuming(args, stop.run.path)}", file=sys.stderr)
            raise
        out = judged.out
    page = args.html if args.html is not None else None if out is None else out / "agreement.html"
    numbers = judged.numbers
    assert numbers is not None
    if out is not None:
        write_atomic(out / "agreement.csv", csv_text(numbers.rows()).encode())
        write_json(out / "agreement.json", as_json(judged, numbers))
    if page is not None:
        write_atomic(page, comparison_page(judged))
    if args.json:
        print_json(as_json(judged, numbers))
    else:
        _print(judged, numbers, page, out)
    return DIFFER if numbers.differs else 0


def _two_runs(args: argparse.Namespace) -> RunComparison:
    if args.backends is not None:
        raise SpecError(
            "compare backends RUN_A RUN_B takes runs that are there; --backends runs a spec: one of the two"
        )
    for directory in (Path(args.spec), args.other):
        if not directory.is_dir():
            raise SpecError(
                f"{directory}: is no run directory; two runs: "
                f"{command('compare', 'backends', 'RUN_A', 'RUN_B')}, a spec: "
                f"{command('compare', 'backends', args.spec, '--backends', 'virtual,guest')}"
            )
    return agree_runs(args.spec, args.other)


def _two_backends(args: argparse.Namespace) -> RunComparison:
    with TerminalProgress() as progress:
        return agree_backends(
            **plan_options(args), backends=_backends(args.backends), inventory=_inventory(args), jobs=args.jobs,
            allow_programs=args.allow_programs,
            out=args.out, resume=args.resume, arguments=args.typed, progress=progress,
        )  # fmt: skip


def _backends(text: str | None) -> tuple[str, str]:
    known = [name for name in BACKENDS if name != "auto"]
    names = [name.strip() for name in (text or "").split(",") if name.strip()]
    if len(names) != 2 or names[0] == names[1] or not set(names) <= set(known):
        raise SpecError(
            f"--backends {text or ''}: wants two different ones of {', '.join(known)}; for example "
            f"--backends virtual,guest (or two run directories: {command('compare', 'backends', 'RUN_A', 'RUN_B')})"
        )
    return names[0], names[1]


def _inventory(args: argparse.Namespace) -> Path | None:
    if (args.inventory is None) == ("hosts" in _backends(args.backends)):
        raise SpecError("--inventory FILE belongs to the back end hosts, and that to it (docs/physical-hosts.md)")
    inventory: Path | None = args.inventory
    return inventory


def as_json(judged: RunComparison, numbers: Comparison) -> dict[str, Any]:
    """The object of --json and of agreement.json."""
    sides = (judged.a, judged.b)
    names = [side.name for side in sides]
    return {
        "agree": not numbers.differs,
        "sides": [
            {"name": side.name, "run_dir": str(side.path), "backend": side.manifest.backend,
             "kernel": side.manifest.kernel_release, "cells": side.outcomes, "again": side.again, "late": side.late}
            for side in sides
        ],
        "lateness_s": numbers.lateness_s,
        "numbers": {verdict: numbers.counts[verdict] for verdict in OF_AGREEMENT},
        "in_words": sentences(numbers, names),
        "metrics": [
            {"metric": metric.metric, "unit": metric.unit,
             **{verdict: metric.counts[verdict] for verdict in OF_AGREEMENT},
             "offset": metric.offset, "low": metric.low, "high": metric.high}
            for metric in numbers.metrics()
        ],
        "not_agreeing": [_number(number) for number in numbers.numbers if number.verdict in ("differ", "unclear")],
        "verdicts": numbers.verdicts,
        "parted": [
            {"levels": dict(levels), "senders": [divergence.words(*names) for divergence in divergences]}
            for levels, divergences in judged.divergences.items()
        ],
    }  # fmt: skip


def _number(number: ComparedNumber) -> dict[str, Any]:
    return {
        "levels": dict(number.levels), "flow": number.flow, "metric": number.metric, "unit": number.unit,
        "verdict": number.verdict, "a": number.a, "b": number.b, "difference": number.difference, "low": number.low,
        "high": number.high, "bound": number.bound, "bound_of": number.bound_of, "draws": number.draws,
    }  # fmt: skip


def _print(judged: RunComparison, compared: Comparison, page: Path | None, out: Path | None) -> None:
    console = plain_console()
    sides = (judged.a, judged.b)
    names = [side.name for side in sides]
    late = (f"; {side.late}" if side.late else "" for side in sides)
    heads = [(side.name, f"{side.path}  ({side.outcomes}{more})") for side, more in zip(sides, late, strict=True)]
    print_lines(columns(heads))
    console.print()
    for sentence in sentences(compared, names):
        console.print(f"- {sentence}", markup=False)
    metrics, more = _metrics(compared)
    console.print(metrics)
    if more:
        console.print(f"... and {more} more metrics, on the page")
    _print_numbers(console, compared.of("differ"), "differ", names, SHOWN)
    _print_numbers(console, compared.of("unclear"), "unclear", names, FEW)
    for levels, divergences in list(judged.divergences.items())[:SHOWN]:
        for divergence in divergences:
            console.print(f"{levels_words(levels)}: {divergence.words(*names)}", markup=False)
    if page is not None:
        console.print(f"page: {page.resolve()}", markup=False, soft_wrap=True)
    if out is not None:
        console.print(str(out), markup=False, soft_wrap=True)


def _metrics(compared: Comparison) -> tuple[Table, int]:
    """The metrics that say most, and how many are not shown."""
    metrics = compared.metrics()
    telling = [row for row in metrics if row.counts["differ"] or row.counts["unclear"] or row.metric in HEADLINE]
    heads = ("metric", ">agree", ">differ", ">unclear", ">mean offset", ">farthest out", ">its bound")
    shown = make_table("Metrics, over all places", *heads)
    for row in telling[:SHOWN]:
        counts = [str(row.counts[verdict] or "") for verdict in ("agree", "differ", "unclear")]
        far = row.worst
        worst = (
            ("", "") if far is None else (amount(far.difference, far.unit, signed=True), amount(far.bound, far.unit))
        )
        shown.add_row(row.metric, *counts, gap_words(row), *worst)
    return shown, len(metrics) - min(len(telling), SHOWN)


def _print_numbers(console: Console, numbers: list[ComparedNumber], verdict: str, names: list[str], most: int) -> None:
    if not numbers:
        return
    numeric = (f">{head}" for head in (*names, "difference, 95 %", "bound"))
    shown = make_table(f"Numbers: {verdict}", "levels", "metric", *numeric)
    for number in numbers[:most]:
        metric = f"{number.flow} {number.metric}".strip()
        values = (amount(value, number.unit) for value in (number.a, number.b))
        bound = amount(number.bound, number.unit)
        shown.add_row(*map(Text, (levels_words(number.levels), metric, *values, interval_words(number), bound)))
    console.print(shown)
    if len(numbers) > most:
        console.print(f"... and {len(numbers) - most} more: agreement.csv has all of them")
