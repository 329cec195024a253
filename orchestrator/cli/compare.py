"""`netwarp compare A B`: two runs side by side, and what changed beyond noise."""

from __future__ import annotations

import argparse
import dataclasses
import filecmp
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..errors import SpecError
from ..report.data import set_arguments
from ..report.numbers import readable
from ..store import CellDir, RunDir, read_json, write_atomic
from ..study import Plan
from ..tables import Results
from ..tables.compare import Change, Comparison, Moved, compare, comparison_rows
from ..tables.write import csv_text
from .manifest import Manifest
from .stages import collect
from .summary import summary_console

SHOWN = 20
MADE_BY = {
    "spec": "spec",
    "spec_sha256": "text of the spec",
    "seed": "seed",
    "repetitions": "repetitions",
    "backend": "back end",
    "kernel_release": "kernel",
    "kernel_sha256": "kernel binary",
    "programs": "programs in the guest",
    "netwarp_version": "netwarp",
    "git_commit": "commit",
    "git_dirty": "uncommitted changes",
    "tools": "Python packages",
    "host_kernel": "host kernel",
    "host_cpu": "host CPU",
}
"""Fields of the manifest that may explain a difference, and how they are called."""
DIGEST = 12


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare it."""
    parser = commands.add_parser("compare", help="two runs side by side: what changed beyond noise")
    parser.add_argument("a", type=Path, metavar="RUN_A")
    parser.add_argument("b", type=Path, metavar="RUN_B")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write every number of both runs to a table")
    parser.add_argument("--exit-code", action="store_true", help="exit with 1 if anything changed (for scripts)")
    parser.set_defaults(run=run_compare)


def run_compare(args: argparse.Namespace) -> int:
    """`netwarp compare`."""
    runs = [RunDir(args.a), RunDir(args.b)]
    if args.csv is not None and args.csv.is_dir():
        raise SpecError(f"--csv {args.csv}: is a directory; name the file, e.g. {args.csv / 'comparison.csv'}")
    a, b = (_results(run) for run in runs)
    found = compare(a, b)
    made = _made(*(read_json(run.manifest, Manifest) for run in runs)) + _planned(a.plan, b.plan)
    captures = _captures(runs[0], runs[1], a, b)
    if args.csv is not None:
        write_atomic(args.csv, csv_text(comparison_rows(found)).encode())
    if args.json:
        sys.stdout.buffer.write(msgspec.json.encode(_object(found, made, captures)) + b"\n")
    else:
        _print(args.a, args.b, found, made, captures)
    return 1 if args.exit_code and found.differs else 0


def _results(run: RunDir) -> Results:
    plan = read_json(run.plan, Plan)
    collected = collect(plan, run)
    return Results(plan, collected.outcomes, collected.measurements)


def _made(a: Manifest, b: Manifest) -> tuple[Moved, ...]:
    """How the runs were made, where that differs."""
    sets = [" ".join(set_arguments(one.arguments)) or "-" for one in (a, b)]
    return (Moved("--set", *sets),) * (sets[0] != sets[1]) + tuple(
        Moved(title, _said(getattr(a, field), getattr(b, field)), _said(getattr(b, field), getattr(a, field)))
        for field, title in MADE_BY.items()
        if getattr(a, field) != getattr(b, field)
    )


def _planned(a: Plan, b: Plan) -> tuple[Moved, ...]:
    """Parameters and parts chosen (--only, --where) that differ."""
    said = [{**plan.parameters, "part": " ".join(plan.filters) or "everything"} for plan in (a, b)]
    return tuple(
        Moved(name, *(str(one.get(name, "-")) for one in said))
        for name in dict.fromkeys([*said[0], *said[1]])
        if said[0].get(name) != said[1].get(name)
    )


def _said(value: Any, other: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_short(text)}" for key, text in value.items() if other.get(key) != text) or "-"
    return "unknown" if value is None else _short(str(value))


def _short(text: str) -> str:
    """A digest, shortened; anything else as it is."""
    hexadecimal = len(text) >= 40 and all(letter in "0123456789abcdef" for letter in text)
    return text[:DIGEST] if hexadecimal else text


def _captures(run_a: RunDir, run_b: RunDir, a: Results, b: Results) -> tuple[int, int]:
    """(cells whose captures are the same byte for byte, cells that both runs completed under the same id)."""
    ids = [cell.id for cell in a.plan.cells if a.completed(cell.id) and b.completed(cell.id)]
    return sum(_same_captures(run_a.cell(cell_id), run_b.cell(cell_id)) for cell_id in ids), len(ids)


def _same_captures(one: CellDir, other: CellDir) -> bool:
    """By the files; where a run's were removed, by the digests that its analysis kept. What is not known is unequal."""
    names = [sorted(path.name for path in cell.capture.glob("*.pcap*")) for cell in (one, other)]
    if all(names):
        files = names[0]
        return names[0] == names[1] and all(
            filecmp.cmp(one.capture / name, other.capture / name, shallow=False) for name in files
        )
    kept = [read_json(cell.packets, dict[str, str]) if cell.packets.exists() else {} for cell in (one, other)]
    return bool(kept[0]) and kept[0] == kept[1]


def _object(found: Comparison, made: tuple[Moved, ...], captures: tuple[int, int]) -> dict[str, Any]:
    return {
        "differs": found.differs,
        "made": made,
        "cells": {"same_id": captures[1], "same_captures": captures[0]},
        "verdicts": found.verdicts,
        "outcomes": found.outcomes,
        "numbers": Counter(one.status for one in found.numbers),
        "changed": [
            dataclasses.asdict(one) | {"levels": dict(one.levels), "relative": one.relative}
            for one in found.numbers
            if one.status == "changed"
        ],
    }


def _print(a: Path, b: Path, found: Comparison, made: tuple[Moved, ...], captures: tuple[int, int]) -> None:
    console = summary_console()
    console.print(f"A  {a}\nB  {b}")
    if made:
        _print_moved(console, "Made differently", made)
    else:
        console.print("Made alike: same spec, seed, kernel, programs, commit and packages.")
    equal, both = captures
    if both:
        console.print(f"Cells that are the same in both: {both}; their captures are equal byte for byte in {equal}.")
    else:
        console.print("No cell is the same in both (another seed, or another spec): compared by levels.")
    counts = Counter(one.status for one in found.numbers)
    console.print(f"Numbers: {', '.join(f'{count} {status}' for status, count in counts.most_common()) or 'none'}")
    if counts["unclear"]:
        console.print("Unclear: random, with one draw in a run; --repetitions 5 would tell.")
    for title, moved in (("Verdicts that changed", found.verdicts), ("Outcomes that changed", found.outcomes)):
        if moved:
            _print_moved(console, title, moved)
    changed = [one for one in found.numbers if one.status == "changed"]
    if changed:
        changed.sort(key=lambda one: -abs(one.relative) if one.relative is not None else 0.0)
        console.print(_changes(changed[:SHOWN]))
    if len(changed) > SHOWN:
        console.print(f"... and {len(changed) - SHOWN} more: --csv FILE has all of them")
    if found.differs:
        return
    if set(counts) <= {"only in A", "only in B"}:
        console.print("The runs have no number in common: nothing was compared.")
    else:
        console.print("Nothing changed beyond noise.")


def _print_moved(console: Console, title: str, moved: tuple[Moved, ...]) -> None:
    shown = Table(title=title, title_justify="left", title_style="bold")
    for column in ("", "A", "B"):
        shown.add_column(column, overflow="fold")
    for one in moved[:SHOWN]:
        shown.add_row(*map(Text, (one.name, one.a, one.b)))
    console.print(shown)
    if len(moved) > SHOWN:
        console.print(f"... and {len(moved) - SHOWN} more: --json has all of them")


def _changes(changed: list[Change]) -> Table:
    shown = Table(title="Numbers that changed beyond noise", title_justify="left", title_style="bold")
    for column in ("levels", "flow", "metric"):
        shown.add_column(column, overflow="fold")
    for column in ("A", "B", "change"):
        shown.add_column(column, justify="right", no_wrap=True)
    for one in changed:
        levels = " ".join(level for _, level in one.levels)
        change = "" if one.relative is None else f"{one.relative:+.2%}"
        numbers = (readable(value) for value in (one.a, one.b))
        shown.add_row(*map(Text, (levels, one.flow, f"{one.metric} [{one.unit}]", *numbers, change)))
    return shown
