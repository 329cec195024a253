"""Two runs of the same experiment: are their captures the same bytes and their tables the same numbers?

    .venv/bin/python benchmarks/same_results.py RUN_A RUN_B [--renamed OLD=NEW]... [--except COLUMN]...

For changes of the code that must change no result: run an experiment before and after, with the same guest kernel and
seeds. Cells are matched by what they run (network, flows, timeline, seed), not by their ids; a cell without its like is
a failure. Reads the files of both runs and nothing of netwarp, so that it can read runs of two versions.
Exit status: 0 the same, 1 something differs, 2 the arguments are wrong.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import zstandard

LABELS = ("format", "spec", "experiment", "factors", "parameters", "metrics", "metric_units")
"""Keys of a cell that name it or say what is computed from it; all others say what runs."""
CELL_ID = re.compile(r"[A-Za-z0-9._]+_r\d+_[0-9a-f]{10}")
MOST = 20
"""Differences of one kind that are printed."""


def without_defaults(value: Any) -> Any:
    """The value without keys that say nothing (null, false, empty): two versions may write them or leave them out."""
    if isinstance(value, dict):
        kept = {key: without_defaults(one) for key, one in value.items()}
        return {key: one for key, one in kept.items() if one is not None and one is not False and one not in ({}, [])}
    return [without_defaults(one) for one in value] if isinstance(value, list) else value


def content(cell: Path) -> str:
    """The content of a cell, as text."""
    read = json.loads((cell / "cell.json").read_bytes())
    return json.dumps(without_defaults({k: v for k, v in read.items() if k not in LABELS}), sort_keys=True)


def digest(capture: Path) -> str:
    """SHA-256 of a capture's bytes, decompressed."""
    total = hashlib.sha256()
    with open(capture, "rb") as file:
        reader = zstandard.ZstdDecompressor().stream_reader(file) if capture.suffix == ".zst" else file
        while block := reader.read(1 << 20):
            total.update(block)
    return total.hexdigest()


def captures(cell: Path) -> dict[str, str]:
    """File name without .zst -> digest."""
    return {path.name.removesuffix(".zst"): digest(path) for path in sorted((cell / "capture").glob("*.pcap*"))}


def numbers(cell: Path, renamed: dict[str, str]) -> Counter[tuple[str, str, str, str]]:
    """Flow, metric, value and unit of every measurement; of a cell that did not complete none."""
    path = cell / "derived" / "measurements.json"
    rows = json.loads(path.read_bytes()) if path.exists() else []
    return Counter((r["flow"], renamed.get(r["metric"], r["metric"]), repr(r["value"]), r["unit"]) for r in rows)


def cells(run: Path) -> dict[str, list[Path]]:
    """Content -> the cells that have it."""
    found: dict[str, list[Path]] = defaultdict(list)
    for path in sorted((run / "cells").glob("*/cell.json")):
        if not path.parent.name.startswith("."):
            found[content(path.parent)].append(path.parent)
    return found


class Labels:
    """The labels of a run's cells: their ids, each with a name that is the same in both runs; factors; experiments."""

    def __init__(self, run: Path) -> None:
        self.names = {
            path.name: f"cell {hashlib.sha256(what.encode()).hexdigest()[:16]}"
            for what, paths in cells(run).items()
            for path in paths
        }
        cell = json.loads(next((run / "cells").glob("*/cell.json")).read_bytes())
        self.columns = {"experiment", *cell["factors"]}

    def named(self, text: str) -> str:
        """A text of a table with every cell named by what it runs."""
        return CELL_ID.sub(lambda match: self.names.get(match[0], match[0]), text)


def rows(path: Path, labels: Labels, renamed: dict[str, str]) -> list[dict[str, str]]:
    """The rows of a table, cells named by what they run.

    Where a row is of a cell, its factors and experiment are labels of what the cell's name says, and left out.
    The condition of a claim, once the end of its id, is put into a column of its own.
    """
    found: list[dict[str, str]] = []
    with open(path, newline="") as file:
        for read in csv.DictReader(file):
            kept = {key: labels.named(value) for key, value in read.items()}
            if "cell_id" in kept:
                kept = {key: value for key, value in kept.items() if key not in labels.columns}
            row = {renamed.get(key, key): value for key, value in kept.items()}
            if path.name in ("claims.csv", "claim_details.csv") and "condition" not in row:
                row["claim"], _, row["condition"] = row["claim"].partition(" ")
            found.append(row)
    return found


def tables(a: Path, b: Path, renamed: dict[str, str], moved: dict[str, str], left_out: list[str]) -> Iterator[str]:
    """The differences between the tables of two runs. Columns that only B has are no difference: they may be added."""
    labels = Labels(a), Labels(b)
    for path in sorted((a / "tables").glob("*.csv")):
        other = b / "tables" / moved.get(path.name, path.name)
        if not other.exists():
            yield f"tables/{path.name}: run B has no such table"
            continue
        before, after = rows(path, labels[0], renamed), rows(other, labels[1], {})
        columns = [column for column in (before[0] if before else ()) if column not in left_out]
        missing = [column for column in columns if after and column not in after[0]]
        if missing:
            yield f"tables/{path.name}: run B has no column {', '.join(missing)}"
            continue
        left = Counter(tuple(row[column] for column in columns) for row in before)
        right = Counter(tuple(row[column] for column in columns) for row in after)
        if left != right:
            one = next(iter((left - right) or (right - left)))
            gone, come = (left - right).total(), (right - left).total()
            yield f"tables/{path.name}: {gone} rows of A are not in B, {come} of B not in A: {one}"


def main() -> int:
    """Compare; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run_a", type=Path)
    parser.add_argument("run_b", type=Path)
    parser.add_argument("--renamed", action="append", default=[], metavar="OLD=NEW", help="a column or metric renamed")
    parser.add_argument("--table", action="append", default=[], metavar="OLD=NEW", help="a table's file renamed")
    parser.add_argument("--except", action="append", default=[], metavar="COLUMN", dest="left_out",
                        help="a column that is not compared (a text that names a moved file)")  # fmt: skip
    parser.add_argument("--no-tables", action="store_true", help="compare the cells alone")
    args = parser.parse_args()
    for run in (args.run_a, args.run_b):
        if not (run / "cells").is_dir():
            parser.error(f"{run}: is no run directory (it has no cells/)")
    renamed, moved = (dict(pair.split("=", 1) for pair in given) for given in (args.renamed, args.table))
    a, b = cells(args.run_a), cells(args.run_b)
    problems: list[str] = []
    files = measured = 0
    for what in a.keys() | b.keys():
        if what not in a or what not in b or len(a[what]) != len(b[what]):
            problems.append(f"cell without its like: {[path.name for path in a.get(what, []) + b.get(what, [])]}")
            continue
        left, right = ([captures(cell) for cell in side] for side in (a[what], b[what]))
        files += sum(len(one) for one in left)
        if any(one != left[0] for one in left + right) or not left[0]:
            problems.append(f"captures differ: {a[what][0].name} and {b[what][0].name}")
        before = sum((numbers(cell, renamed) for cell in a[what]), Counter())
        after = sum((numbers(cell, {}) for cell in b[what]), Counter())
        measured += before.total()
        if before - after:
            one = next(iter(before - after))
            problems.append(f"numbers differ: {a[what][0].name}: {(before - after).total()} of A, e.g. {one}")
    if not args.no_tables:
        problems += tables(args.run_a, args.run_b, renamed, moved, args.left_out)
    count = sum(len(one) for one in a.values())
    print(f"{count} cells, {files} captures, {measured} measurements of A compared with B")
    for problem in problems[:MOST]:
        print(problem)
    if len(problems) > MOST:
        print(f"... and {len(problems) - MOST} more")
    if args.left_out:
        print(f"not compared: {', '.join(args.left_out)}")
    print("the same" if not problems else f"{len(problems)} differences")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
