"""`netwarp compare A B`: two runs side by side, and what changed beyond noise."""

from __future__ import annotations

import argparse
import dataclasses
import filecmp
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..core.errors import SpecError
from ..core.numbers import given, percent, readable
from ..core.types import Cell
from ..core.units import counted
from ..engine.stages import collect
from ..measure.capture_point import capture_file
from ..plan.types import Plan
from ..present.run_data import set_arguments
from ..results import Results
from ..results.compare import Change, Comparison, Moved, compare, comparison_rows
from ..results.write import csv_text
from ..sandbox.choose import lateness_s
from ..store.manifest import Manifest
from ..store.run_dir import CellDir, RunDir, read_json, write_atomic
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
    manifests = [read_json(run.manifest, Manifest) for run in runs]
    clock_s = max(lateness_s(manifest.backend) for manifest in manifests)
    found = compare(a, b, clock_s)
    made = _made(*manifests) + _planned(a.plan, b.plan)
    captures = _captures(runs[0], runs[1], a, b)
    if args.csv is not None:
        write_atomic(args.csv, csv_text(comparison_rows(found)).encode())
    if args.json:
        sys.stdout.buffer.write(msgspec.json.encode(_object(found, made, captures)) + b"\n")
    else:
        _print(args.a, args.b, found, made, captures, clock_s)
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


def _captures(run_a: RunDir, run_b: RunDir, a: Results, b: Results) -> dict[str, int]:
    """same_id: cells that both runs completed under the same id; same_captures: those whose captures are the same byte
    for byte; without_captures: those whose captures, and the digests that analysis keeps of them, a run lacks.
    """
    cells = [cell for cell in a.plan.cells if a.completed(cell.id) and b.completed(cell.id)]
    equal = without = 0
    for cell in cells:
        same = _same_captures(cell, run_a.cell(cell.id), run_b.cell(cell.id))
        equal += same is True
        without += same is None
    return {"same_id": len(cells), "same_captures": equal, "without_captures": without}


def _same_captures(cell: Cell, a: CellDir, b: CellDir) -> bool | None:
    """By the files; where captures were removed, by the digests that the analysis kept. None: not known."""
    files = [_capture_files(cell, directory) for directory in (a, b)]
    if files[0] is not None and files[1] is not None:
        return all(filecmp.cmp(*pair, shallow=False) for pair in zip(files[0], files[1], strict=True))
    kept = [read_json(side.packets, dict[str, str]) if side.packets.exists() else {} for side in (a, b)]
    return kept[0] == kept[1] if all(kept) else None


def _capture_files(cell: Cell, directory: CellDir) -> list[Path] | None:
    """A cell's captures, in the order of the plan; None where one is not there."""
    found = [capture_file(directory.root, one.node, one.link) for one in cell.captures]
    there = [path for path in found if path is not None]
    return there if len(there) == len(found) else None


def _object(found: Comparison, made: tuple[Moved, ...], captures: Mapping[str, int]) -> dict[str, Any]:
    return {
        "differs": found.differs,
        "made": made,
        "cells": dict(captures),
        "verdicts": found.verdicts,
        "outcomes": found.outcomes,
        "numbers": Counter(one.status for one in found.numbers),
        "changed": [
            dataclasses.asdict(one) | {"levels": dict(one.levels), "relative": one.relative}
            for one in found.numbers
            if one.status == "changed"
        ],
    }


def _print(
    a: Path, b: Path, found: Comparison, made: tuple[Moved, ...], captures: Mapping[str, int], clock_s: float
) -> None:
    console = summary_console()
    console.print(f"A  {a}\nB  {b}")
    if made:
        _print_moved(console, "Made differently", made)
    else:
        console.print("Made alike: same spec, seed, kernel, programs, commit and packages.")
    both, equal, without = captures["same_id"], captures["same_captures"], captures["without_captures"]
    if both:
        console.print(f"Cells that are the same in both: {both}; their captures are equal byte for byte in {equal}.")
        if without:
            console.print(f"Captures of {counted(without, 'cell')} are missing in a run: those were not compared.")
    else:
        console.print("No cell is the same in both (another seed, or another spec): compared by levels.")
    counts = Counter(one.status for one in found.numbers)
    console.print(f"Numbers: {', '.join(f'{count} {status}' for status, count in counts.most_common()) or 'none'}")
    if counts["unclear"]:
        console.print("Unclear: random, with one draw in a run; --repetitions 5 would tell.")
    if counts["unresolved"]:
        console.print(
            "Unresolved: the values differ, but by less than a clock resolves that may be "
            f"{given(clock_s * 1e6)} us late."
        )
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
        change = "" if one.relative is None else percent(one.relative, signed=True)
        numbers = (readable(value) for value in (one.a, one.b))
        shown.add_row(*map(Text, (levels, one.flow, f"{one.metric} [{one.unit}]", *numbers, change)))
    return shown
