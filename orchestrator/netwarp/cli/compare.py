"""`netwarp compare A B`: two runs side by side, and what changed beyond noise."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..core.errors import SpecError
from ..core.numbers import given, percent, readable
from ..core.units import QuantityError, counted, parse_quantity
from ..engine.compare import compare_exactly, compare_runs
from ..engine.compare_packets import compare_packets
from ..engine.stored_files import changed_lines
from ..results.compared_numbers import ComparedNumber, Comparison, Moved
from ..results.run_comparison import RunComparison
from ..results.senses import Sense, senses
from ..results.write import csv_text
from ..store.run_dir import write_atomic
from .output import make_table, plain_console, print_json
from .places import new_file

SHOWN = 20
NOTHING = "The runs have no number in common: nothing was compared."


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare it."""
    parser = commands.add_parser(
        "compare runs", help="show changes beyond noise from one run to another (also: netwarp compare RUN_A RUN_B)",
        example="netwarp compare before after --exact",
    )  # fmt: skip
    parser.add_argument("a", type=Path, metavar="RUN_A")
    parser.add_argument("b", type=Path, metavar="RUN_B")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--csv", type=new_file, metavar="FILE", help="write every number of both runs to a table")
    parser.add_argument("--html", type=new_file, metavar="FILE", help="write a page")
    parser.add_argument("--exit-code", action="store_true", help="exit with 1 if anything changed (for scripts)")
    parser.add_argument(
        "--exact", action="store_true",
        help="equal captures, measurements and tables, of two versions of netwarp too; exit with 1 where they are not",
    )  # fmt: skip
    parser.add_argument(
        "--renamed", action="append", default=[], metavar="OLD=NEW", help="with --exact: a metric, column or table"
    )
    parser.add_argument(
        "--except", action="append", default=[], metavar="COLUMN", dest="left_out",
        help="with --exact: a column of tables that is not compared",
    )  # fmt: skip
    parser.add_argument("--no-tables", action="store_true", help="with --exact: compare the cells alone")
    parser.add_argument(
        "--map", nargs=2, action="append", default=[], metavar=("FACTOR", "A=B"),
        help="hold a level of A against another one of B, for example --map congestion reno=mine1 (several with commas "
        "between); both may be of one run",
    )  # fmt: skip
    parser.add_argument(
        "--packets", action="store_true",
        help="equal packets of two kernels or seeds, without what a stack draws at random (initial numbers, tags, "
        "cookies, ports); exit with 1 where they are not",
    )  # fmt: skip
    parser.add_argument(
        "--within",
        default="20 us",
        metavar="TIME",
        help="with --packets: times may differ by this much (default: 20 us)",
    )
    parser.set_defaults(run=run_compare)


def run_compare(args: argparse.Namespace) -> int:
    """`netwarp compare`."""
    if args.map and (args.packets or args.exact):
        raise SpecError("--map compares numbers by levels: leave out --packets and --exact")
    if args.packets:
        return _run_packets(args)
    if args.exact:
        return _run_exactly(args)
    if args.renamed or args.left_out or args.no_tables:
        raise SpecError("--renamed, --except and --no-tables belong to --exact")
    if args.csv is not None and args.csv.is_dir():
        raise SpecError(f"--csv {args.csv}: is a directory; name the file, e.g. {args.csv / 'comparison.csv'}")
    if args.html is not None:
        from ..present.captures.page_sections import claim_page

        claim_page(args.html)
    mapped = mapped_levels(args.map)
    _name_changed(args)
    compared = compare_runs(args.a, args.b, mapped=mapped)
    numbers = compared.numbers
    assert numbers is not None
    if args.csv is not None:
        write_atomic(args.csv, csv_text(numbers.rows()).encode())
    if args.html is not None:
        from ..present.pages.comparison import comparison_page  # here: that room takes a second to import

        write_atomic(args.html, comparison_page(compared))
    if args.json:
        print_json(as_json(compared, numbers))
    else:
        for factor, pairs in mapped.items():
            print(f"{factor}: {', '.join(f'{one} in A against {other} in B' for one, other in pairs.items())}")
        print_comparison(compared, numbers)
    if args.exit_code and numbers.empty:
        raise SpecError(NOTHING)
    return 1 if args.exit_code and numbers.differs else 0


def _name_changed(args: argparse.Namespace) -> None:
    """Say which files of the two runs, captures among them, are not what the runs wrote."""
    for line in (*changed_lines(args.a, captures=True), *changed_lines(args.b, captures=True)):
        print(line, file=sys.stderr)


def mapped_levels(given: Sequence[Sequence[str]]) -> dict[str, dict[str, str]]:
    """[["congestion", "reno=mine1,cubic=mine2"]] -> factor -> level of A -> level of B. Raises SpecError."""
    mapped: dict[str, dict[str, str]] = {}
    for factor, text in given:
        for pair in text.split(","):
            one, equals, other = (part.strip() for part in pair.partition("="))
            if not (one and equals and other):
                raise SpecError(f"--map {factor} {text}: wants A=B, for example --map congestion reno=mine1")
            mapped.setdefault(factor, {})[one] = other
    return mapped


def as_json(compared: RunComparison, numbers: Comparison) -> dict[str, Any]:
    """The object of --json."""
    changed = [number for number in numbers.numbers if number.verdict == "changed"]
    return {
        "differs": numbers.differs,
        "made": compared.made,
        "cells": {
            "same_id": compared.count("equal", "differ", "no captures"),
            "same_captures": compared.count("equal"),
            "without_captures": compared.count("no captures"),
        },
        "verdicts": numbers.verdicts,
        "outcomes": numbers.outcomes,
        "numbers": numbers.counts,
        "changed": [
            {
                "levels": dict(number.levels), "flow": number.flow, "metric": number.metric, "unit": number.unit,
                "status": number.verdict, "a": number.a, "b": number.b, "draws": number.draws, "p": number.p,
                "relative": number.relative, "sense": meaning,
            }
            for number, meaning in zip(changed, senses(changed), strict=True)
        ],
    }  # fmt: skip


def print_comparison(compared: RunComparison, numbers: Comparison) -> None:
    """The differences, the largest changes first."""
    console = plain_console()
    console.print(f"A  {compared.a.path}\nB  {compared.b.path}")
    if compared.made:
        _print_moved(console, "Made differently", compared.made)
    else:
        console.print("Made alike: same spec, seed, kernel, programs, commit and packages.")
    if same := compared.count("equal", "differ", "no captures"):
        equal, without = compared.count("equal"), compared.count("no captures")
        console.print(
            f"Cells that are the same and ended alike: {same}; their captures are equal byte for byte in {equal}."
        )
        if without:
            console.print(f"Captures of {counted(without, 'cell')} are missing in one run or both: not compared.")
    elif compared.count("ended differently", "not finished"):
        console.print("No cell that is in both ended alike in both: compared by levels.")
    else:
        console.print("No cell is the same in both (another seed, or another spec): compared by levels.")
    counts = numbers.counts
    console.print(f"Numbers: {', '.join(f'{count} {verdict}' for verdict, count in counts.most_common()) or 'none'}")
    if counts["unclear"]:
        console.print("Unclear: random, with one draw in a run; --repetitions 5 would tell.")
    if counts["unresolved"]:
        clock_us = given(numbers.lateness_s * 1e6)
        console.print(f"Unresolved: values that differ by less than a clock resolves that may be {clock_us} us late.")
    for title, moved in (("Verdicts that changed", numbers.verdicts), ("Outcomes that changed", numbers.outcomes)):
        if moved:
            _print_moved(console, title, moved)
    if changed := by_sense(numbers.of("changed")):
        console.print(_changes(changed[:SHOWN]))
    if len(changed) > SHOWN:
        console.print(f"... and {len(changed) - SHOWN} more: --csv FILE has all of them")
    if numbers.differs:
        return
    if numbers.empty:
        console.print(NOTHING)
    else:
        console.print("Nothing changed beyond noise.")


def _print_moved(console: Console, title: str, moved: tuple[Moved, ...]) -> None:
    shown = make_table(title, "", "A", "B")
    for row in moved[:SHOWN]:
        shown.add_row(Text(row.name), Text(row.a), Text(row.b))
    console.print(shown)
    if len(moved) > SHOWN:
        console.print(f"... and {len(moved) - SHOWN} more: --json has all of them")


def by_sense(changed: list[ComparedNumber]) -> list[tuple[ComparedNumber, Sense]]:
    """Changed numbers with what each change means, what broke first."""
    return sorted(zip(changed, senses(changed), strict=True), key=lambda pair: pair[1] != "broke")


def _changes(changed: list[tuple[ComparedNumber, Sense]]) -> Table:
    shown = make_table("Numbers that changed beyond noise", "levels", "flow", "metric", ">A", ">B", ">change", "")
    for row, meaning in changed:
        levels = " ".join(level for _, level in row.levels)
        change = "" if row.relative is None else percent(row.relative, signed=True)
        numbers = (readable(value) for value in (row.a, row.b))
        shown.add_row(*map(Text, (levels, row.flow, f"{row.metric} [{row.unit}]", *numbers, change, meaning)))
    return shown


def _run_packets(args: argparse.Namespace) -> int:
    """0: every cell is in both, with equal packets."""
    try:
        within_ns = int(parse_quantity(args.within, "time").value)
    except QuantityError as error:
        raise SpecError(f"--within: {error}") from error
    _name_changed(args)
    compared = compare_packets(args.a, args.b, within_ns=within_ns)
    for pair in compared.unequal:
        print(f"{pair.id}: {pair.words}")
    equal = compared.count("equal")
    print(f"{equal} of {counted(len(compared.cells), 'cell')} have equal packets, times within {args.within}")
    return 0 if equal == len(compared.cells) else 1


def _run_exactly(args: argparse.Namespace) -> int:
    """0: everything of A is in B, and equal."""
    if wrong := [pair for pair in args.renamed if "=" not in pair]:
        raise SpecError(f"--renamed {wrong[0]}: wants OLD=NEW")
    _name_changed(args)
    compared = compare_exactly(
        args.a, args.b, renamed=dict(pair.split("=", 1) for pair in args.renamed), left_out=args.left_out,
        tables=not args.no_tables,
    )  # fmt: skip
    problems = [f"{pair.id}: {pair.words}" for pair in compared.unequal] + list(compared.files)
    print("\n".join(problems[:SHOWN]), end="\n" * bool(problems))
    if len(problems) > SHOWN:
        print(f"... and {len(problems) - SHOWN} more")
    if args.left_out:
        print(f"not compared: {', '.join(args.left_out)}")
    print(f"{compared.count('equal')} of {counted(len(compared.cells), 'cell')} have equal captures")
    print("the same" if not problems else f"{len(problems)} differences")
    return 1 if problems else 0
