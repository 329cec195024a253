"""`netwarp compare A B`: two runs side by side, and what changed beyond noise."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..core.errors import SpecError
from ..core.numbers import given, percent, readable
from ..core.units import counted
from ..engine.comparison import RunComparison, compare_runs
from ..results.compare import Change, Moved, comparison_rows
from ..results.write import csv_text
from ..store.run_dir import write_atomic
from .summary import summary_console

SHOWN = 20


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare it."""
    parser = commands.add_parser(
        "compare runs", help="two runs side by side: what changed beyond noise (also: netwarp compare RUN_A RUN_B)"
    )
    parser.add_argument("a", type=Path, metavar="RUN_A")
    parser.add_argument("b", type=Path, metavar="RUN_B")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write every number of both runs to a table")
    parser.add_argument("--exit-code", action="store_true", help="exit with 1 if anything changed (for scripts)")
    parser.set_defaults(run=run_compare)


def run_compare(args: argparse.Namespace) -> int:
    """`netwarp compare`."""
    if args.csv is not None and args.csv.is_dir():
        raise SpecError(f"--csv {args.csv}: is a directory; name the file, e.g. {args.csv / 'comparison.csv'}")
    compared = compare_runs(args.a, args.b)
    if args.csv is not None:
        write_atomic(args.csv, csv_text(comparison_rows(compared.comparison)).encode())
    if args.json:
        sys.stdout.buffer.write(msgspec.json.encode(as_json(compared)) + b"\n")
    else:
        print_comparison(compared)
    return 1 if args.exit_code and compared.comparison.differs else 0


def as_json(compared: RunComparison) -> dict[str, Any]:
    """The object of --json."""
    comparison = compared.comparison
    return {
        "differs": comparison.differs,
        "made": compared.made,
        "cells": compared.captures,
        "verdicts": comparison.verdicts,
        "outcomes": comparison.outcomes,
        "numbers": Counter(number.status for number in comparison.numbers),
        "changed": [
            dataclasses.asdict(number) | {"levels": dict(number.levels), "relative": number.relative}
            for number in comparison.numbers
            if number.status == "changed"
        ],
    }


def print_comparison(compared: RunComparison) -> None:
    """The differences, the largest changes first."""
    comparison, captures = compared.comparison, compared.captures
    console = summary_console()
    console.print(f"A  {compared.a.path}\nB  {compared.b.path}")
    if compared.made:
        _print_moved(console, "Made differently", compared.made)
    else:
        console.print("Made alike: same spec, seed, kernel, programs, commit and packages.")
    if captures.same_id:
        equal = captures.same_captures
        console.print(
            f"Cells that are the same in both: {captures.same_id}; their captures are equal byte for byte in {equal}."
        )
        if captures.without_captures:
            without = counted(captures.without_captures, "cell")
            console.print(f"Captures of {without} are missing in a run: those were not compared.")
    else:
        console.print("No cell is the same in both (another seed, or another spec): compared by levels.")
    counts = Counter(number.status for number in comparison.numbers)
    console.print(f"Numbers: {', '.join(f'{count} {status}' for status, count in counts.most_common()) or 'none'}")
    if counts["unclear"]:
        console.print("Unclear: random, with one draw in a run; --repetitions 5 would tell.")
    if counts["unresolved"]:
        clock_us = compared.clock_s * 1e6
        console.print(
            f"Unresolved: the values differ, but by less than a clock resolves that may be {given(clock_us)} us late."
        )
    for title, moved in (
        ("Verdicts that changed", comparison.verdicts),
        ("Outcomes that changed", comparison.outcomes),
    ):
        if moved:
            _print_moved(console, title, moved)
    changed = [number for number in comparison.numbers if number.status == "changed"]
    if changed:
        changed.sort(key=lambda number: -abs(number.relative) if number.relative is not None else 0.0)
        console.print(_changes(changed[:SHOWN]))
    if len(changed) > SHOWN:
        console.print(f"... and {len(changed) - SHOWN} more: --csv FILE has all of them")
    if comparison.differs:
        return
    if set(counts) <= {"only in A", "only in B"}:
        console.print("The runs have no number in common: nothing was compared.")
    else:
        console.print("Nothing changed beyond noise.")


def _print_moved(console: Console, title: str, moved: tuple[Moved, ...]) -> None:
    shown = Table(title=title, title_justify="left", title_style="bold")
    for column in ("", "A", "B"):
        shown.add_column(column, overflow="fold")
    for row in moved[:SHOWN]:
        shown.add_row(*map(Text, (row.name, row.a, row.b)))
    console.print(shown)
    if len(moved) > SHOWN:
        console.print(f"... and {len(moved) - SHOWN} more: --json has all of them")


def _changes(changed: list[Change]) -> Table:
    shown = Table(title="Numbers that changed beyond noise", title_justify="left", title_style="bold")
    for column in ("levels", "flow", "metric"):
        shown.add_column(column, overflow="fold")
    for column in ("A", "B", "change"):
        shown.add_column(column, justify="right", no_wrap=True)
    for row in changed:
        levels = " ".join(level for _, level in row.levels)
        change = "" if row.relative is None else percent(row.relative, signed=True)
        numbers = (readable(value) for value in (row.a, row.b))
        shown.add_row(*map(Text, (levels, row.flow, f"{row.metric} [{row.unit}]", *numbers, change)))
    return shown
