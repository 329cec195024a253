"""`netwarp agree SPEC --backends A,B`: the same cells on two back ends, and whether their numbers agree."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..core.errors import CaptureError, SpecError, StoreError
from ..core.invocation import command
from ..measure.first_divergence import Divergence, first_divergence
from ..plan.types import Plan
from ..present.agreement_words import LEADING, amount, gap_words, interval_words, levels_words, sentences
from ..present.captures.page_sections import claim_page
from ..present.pages.agreement import AgreementPage, SideFacts, agreement_page
from ..results.agreement import VERDICTS, Agreed, Agreement, agree, agreement_rows
from ..results.compare import Levels, levels_of
from ..results.write import csv_text
from ..sandbox.choose import BACKENDS, choose
from ..store.run_dir import RunDir, locked, no_room, write_atomic, write_json
from ..store.run_locations import check_out, new_directory
from .agree_sides import AgreementSide, run_side, side_of
from .run import EXIT_INTERRUPTED, add_plan_arguments, plan_of, resuming
from .summary import summary_console

REPETITIONS = 5
"""Unless told: fewer draws cannot tell a difference of random numbers from chance at all."""
SHOWN, FEW = 20, 6
PARTED = 20
"""Places that differ whose captures are looked into."""
DIFFER = 1


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare it."""
    parser = commands.add_parser(
        "agree", help="the same cells on two back ends: do their numbers agree?",
        description="Runs the cells of a spec on two back ends, or takes two runs that are there (RUN_A RUN_B), and "
        "holds every number of the second against the first within what the instrument allows.",
    )  # fmt: skip
    add_plan_arguments(parser)
    parser.add_argument("other", metavar="RUN_B", nargs="?", type=Path, help="with RUN_A for SPEC: two runs")
    parser.add_argument("--backends", metavar="A,B", help="e.g. virtual,guest (of virtual, guest, netns)")
    parser.add_argument("--jobs", type=int, help="cells at once (default: cores; on the wall clock 1)")
    parser.add_argument("--out", type=Path, help="directory for both runs (default: results/agreement/<name>/<time>/)")
    parser.add_argument("--resume", action="store_true", help="go on with an interrupted one (wants --out)")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the summary")
    parser.add_argument("--html", type=Path, metavar="FILE", help="the page (default: <out>/agreement.html)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """0: nothing differs; 1: something does."""
    if args.html is not None:
        claim_page(args.html)
    if args.other is not None:
        if args.backends is not None:
            raise SpecError("agree RUN_A RUN_B takes runs that are there; --backends runs a spec: one of the two")
        for place in (Path(args.spec), args.other):
            if not place.is_dir():
                raise SpecError(
                    f"{place}: is no run directory; two runs: {command('agree', 'RUN_A', 'RUN_B')}, a spec: "
                    f"{command('agree', args.spec, '--backends', 'virtual,guest')}"
                )
        sides = _named_apart(side_of(RunDir(Path(args.spec))), side_of(RunDir(args.other)))
        out = args.out
    else:
        made = _run_both(args)
        if made is None:
            return EXIT_INTERRUPTED
        sides, out = made
    a, b = sides
    found = agree(a.results, b.results, max(a.lateness_s, b.lateness_s))
    if not found.numbers:
        raise SpecError(f"{a.run.root} and {b.run.root} have no number in common: nothing was compared")
    parted = _partings(found, a, b)
    page = args.html if args.html is not None else None if out is None else out / "agreement.html"
    if out is not None:
        write_atomic(out / "agreement.csv", csv_text(agreement_rows(found)).encode())
        write_json(out / "agreement.json", _object(found, sides, parted))
    if page is not None:
        write_atomic(page, agreement_page(_page(found, sides, parted)))
    if args.json:
        sys.stdout.buffer.write(msgspec.json.encode(_object(found, sides, parted)) + b"\n")
    else:
        _print(found, sides, parted, page, out)
    return DIFFER if found.differs else 0


def _run_both(args: argparse.Namespace) -> tuple[tuple[AgreementSide, AgreementSide], Path] | None:
    """Both runs; None: interrupted."""
    names = _backends(args.backends)
    if args.resume and args.out is None:
        raise SpecError("--resume wants --out: the directory of the interrupted one")
    if args.jobs is not None and args.jobs < 1:
        raise SpecError(f"--jobs {args.jobs}: at least 1")
    if args.repetitions is None:
        args.repetitions = REPETITIONS
    spec, whole = plan_of(args, names[0])
    drawn = tuple(cell for cell in whole.cells if cell.random or cell.repetition == 0)
    for name in names:  # before anything runs: may raise BackendUnavailable
        choose(name).backend.close()
    if args.out is not None:
        check_out(args.out, args.resume, names)
    out = args.out or new_directory(Path("results") / "agreement" / whole.name).root
    found = []
    with locked(RunDir(out)):
        for name in names:
            # what is not random is the same again in virtual time; on the wall clock its repetitions are its spread
            plan = msgspec.structs.replace(whole, cells=drawn) if name == "virtual" else whole
            try:
                found.append(run_side(args, spec, plan, name, RunDir(out / name)))
            except KeyboardInterrupt:
                print(f"netwarp: interrupted; go on with: {resuming(args, out)}", file=sys.stderr)
                return None
            except (OSError, StoreError) as error:
                if no_room(error):
                    print(f"netwarp: make room, then go on with: {resuming(args, out)}", file=sys.stderr)
                raise
    return (found[0], found[1]), out


def _backends(text: str | None) -> tuple[str, str]:
    known = [name for name in BACKENDS if name not in ("auto", "hosts")]
    names = [name.strip() for name in (text or "").split(",") if name.strip()]
    if len(names) != 2 or names[0] == names[1] or not set(names) <= set(known):
        raise SpecError(
            f"--backends {text or ''}: wants two different ones of {', '.join(known)}; for example "
            f"--backends virtual,guest (or two run directories: {command('agree', 'RUN_A', 'RUN_B')})"
        )
    return names[0], names[1]


def _named_apart(a: AgreementSide, b: AgreementSide) -> tuple[AgreementSide, AgreementSide]:
    """Two runs of one back end are called A and B."""
    if a.name != b.name:
        return a, b
    return AgreementSide("A", a.run, a.results, a.manifest), AgreementSide("B", b.run, b.results, b.manifest)


def _partings(found: Agreement, a: AgreementSide, b: AgreementSide) -> dict[Levels, tuple[Divergence, ...]]:
    """Of the places that differ, from their captures: where the senders of repetition 0 part."""
    places = list(dict.fromkeys(one.levels for one in found.numbers if one.verdict == "differ"))
    parted: dict[Levels, tuple[Divergence, ...]] = {}
    for levels in places[:PARTED]:
        cells = []
        for side in (a, b):
            mine = [cell for cell in side.results.plan.cells if set(levels_of(cell)) == set(levels)]
            cells.append(next((cell for cell in mine if side.results.completed(cell.id)), None))
        one, other = cells
        if one is None or other is None:
            continue
        slack_s = 2 * found.lateness_s
        directories = a.run.cell(one.id), b.run.cell(other.id)
        try:
            seen = [
                first_divergence(one, *directories, flow.name, slack_s) for flow in one.flows if not flow.is_datagrams
            ]
        except (CaptureError, KeyError, StopIteration):
            continue  # captures that cannot be read explain nothing; the numbers stand
        parted[levels] = tuple(each for each in seen if each is not None)
    return parted


def _object(
    found: Agreement, sides: tuple[AgreementSide, AgreementSide], parted: dict[Levels, tuple[Divergence, ...]]
) -> dict[str, Any]:
    names = [side.name for side in sides]
    return {
        "agree": not found.differs,
        "sides": [
            {"name": side.name, "run_dir": str(side.run.root), "backend": side.manifest.backend,
             "kernel": side.manifest.kernel_release, "cells": side.outcomes, "again": side.again, "late": side.late}
            for side in sides
        ],
        "lateness_s": found.lateness_s,
        "numbers": {verdict: found.count(verdict) for verdict in VERDICTS},
        "in_words": sentences(found, names),
        "metrics": [
            {"metric": one.metric, "unit": one.unit, **one.counts, "offset": one.offset, "low": one.low,
             "high": one.high}
            for one in found.metrics()
        ],
        "not_agreeing": [_number(one) for one in found.numbers if one.verdict in ("differ", "unclear")],
        "verdicts": found.verdicts,
        "parted": [
            {"levels": dict(levels), "senders": [one.words(*names) for one in all_of]}
            for levels, all_of in parted.items()
        ],
    }  # fmt: skip


def _number(one: Agreed) -> dict[str, Any]:
    return {
        "levels": dict(one.levels), "flow": one.flow, "metric": one.metric, "unit": one.unit, "verdict": one.verdict,
        "a": one.a, "b": one.b, "difference": one.difference, "low": one.low, "high": one.high, "bound": one.bound,
        "bound_of": one.bound_of, "draws": one.draws,
    }  # fmt: skip


def _page(
    found: Agreement, sides: tuple[AgreementSide, AgreementSide], parted: dict[Levels, tuple[Divergence, ...]]
) -> AgreementPage:
    names = [side.name for side in sides]
    plan: Plan = sides[0].results.plan
    return AgreementPage(
        title=plan.title or plan.name,
        part=" and ".join(plan.filters) or "everything",
        sides=[
            SideFacts(
                side.name, side.manifest.backend, side.manifest.kernel_release, side.outcomes, side.manifest.jobs,
                side.manifest.host_load_1min, side.manifest.started_utc, side.again, side.late,
            )
            for side in sides
        ],
        found=found,
        partings={levels: [one.words(*names) for one in all_of] for levels, all_of in parted.items()},
    )  # fmt: skip


def _print(
    found: Agreement, sides: tuple[AgreementSide, AgreementSide], parted: dict[Levels, tuple[Divergence, ...]],
    page: Path | None,
    out: Path | None,
) -> None:  # fmt: skip
    console = summary_console()
    names = [side.name for side in sides]
    for side in sides:
        late = f"; {side.late}" if side.late else ""
        console.print(f"{side.name:<8} {side.run.root}  ({side.outcomes}{late})", markup=False, soft_wrap=True)
    console.print()
    for sentence in sentences(found, names):
        console.print(f"- {sentence}", markup=False)
    metrics, more = _metrics(found)
    console.print(metrics)
    if more:
        console.print(f"... and {more} more metrics, on the page")
    for verdict, most in (("differ", SHOWN), ("unclear", FEW)):
        _print_numbers(console, [one for one in found.numbers if one.verdict == verdict], verdict, names, most)
    for levels, all_of in list(parted.items())[:SHOWN]:
        for one in all_of:
            console.print(f"{levels_words(levels)}: {one.words(*names)}", markup=False)
    if page is not None:
        console.print(f"page: {page.resolve()}", markup=False, soft_wrap=True)
    if out is not None:
        console.print(str(out), markup=False, soft_wrap=True)


def _metrics(found: Agreement) -> tuple[Table, int]:
    """The metrics that say most, and how many are not shown."""
    metrics = found.metrics()
    telling = [one for one in metrics if one.counts["differ"] or one.counts["unclear"] or one.metric in LEADING]
    shown = Table(title="Metrics, over all places", title_justify="left", title_style="bold")
    shown.add_column("metric", no_wrap=True)
    for column in ("agree", "differ", "unclear", "mean offset"):
        shown.add_column(column, justify="right", no_wrap=True)
    for column in ("farthest out", "its bound"):
        shown.add_column(column, justify="right", overflow="fold")
    for one in telling[:SHOWN]:
        counts = [str(one.counts[verdict] or "") for verdict in ("agree", "differ", "unclear")]
        far = one.worst
        worst = (
            ("", "") if far is None else (amount(far.difference, far.unit, signed=True), amount(far.bound, far.unit))
        )
        shown.add_row(one.metric, *counts, gap_words(one), *worst)
    return shown, len(metrics) - min(len(telling), SHOWN)


def _print_numbers(console: Console, numbers: list[Agreed], verdict: str, names: list[str], most: int) -> None:
    if not numbers:
        return
    shown = Table(title=f"Numbers: {verdict}", title_justify="left", title_style="bold")
    for column in ("levels", "metric"):
        shown.add_column(column, overflow="fold")
    for column in (*names, "difference, 95 %", "bound"):
        shown.add_column(column, justify="right")
    numbers = sorted(numbers, key=lambda one: -abs(one.difference or 0.0) / (one.bound or 1.0))
    for one in numbers[:most]:
        metric = f"{one.flow} {one.metric}".strip()
        values = [amount(one.a, one.unit), amount(one.b, one.unit)]
        shown.add_row(
            *map(Text, (levels_words(one.levels), metric, *values, interval_words(one), amount(one.bound, one.unit)))
        )
    console.print(shown)
    if len(numbers) > most:
        console.print(f"... and {len(numbers) - most} more: agreement.csv has all of them")
