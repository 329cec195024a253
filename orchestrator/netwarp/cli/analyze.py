"""`netwarp analyze`: a run directory again, or captures of any origin (docs/analyze.md)."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from ..captures import FileSummary, Join, join_captures, summarise_points
from ..core.errors import CaptureError, SpecError
from ..core.types import Cell, Outcome
from ..engine.stages import analyze_all, tabulate
from ..plan.types import Plan
from ..present.captures.csv_files import claim, write_tables
from ..present.captures.page_sections import claim_page, write_page
from ..store.run_dir import CellDir, RunDir, locked, read_json
from . import summary
from .analyze_text import print_captures

MOST_LEFT = 5
"""Cells that are named when their raw files are missing."""
CAPTURES = ("*.pcap", "*.pcap.zst", "*.pcap.gz", "*.pcapng", "*.pcapng.zst", "*.pcapng.gz", "*.cap")
FORMAT = 1
"""Of --json; a number higher than this one has other keys."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "analyze",
        help="analyse a run directory again, or captures of any origin",
        description="RUN_DIR: derive its measurements, tables and report's data again. CAPTURE: what is in pcap files "
        "of any origin (also gzip, zstd; - is standard input, a directory stands for the captures in it). "
        "docs/analyze.md explains what is printed.",
    )
    parser.add_argument("paths", nargs="+", type=Path, metavar="RUN_DIR | CAPTURE")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--csv", type=Path, metavar="DIR", help="write tidy tables into a new directory, or one of ours"
    )
    parser.add_argument("--html", type=Path, metavar="FILE", help="write one self-contained page with charts")
    parser.add_argument("--join", action="store_true", help="the captures are of one run: loss and delay of each hop")
    parser.add_argument("--one-clock", action="store_true", help="with --join: all captures' times are of one clock")
    parser.add_argument("--merge", action="store_true", help="the captures are the interfaces of one node: one summary")
    parser.add_argument("--full", action="store_true", help="look at everything, however large the capture is")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="RUN_DIR: cells at a time")
    parser.set_defaults(run=run_analyze)


def run_analyze(args: argparse.Namespace) -> int:
    """`netwarp analyze`."""
    if len(args.paths) == 1 and RunDir(args.paths[0]).plan.is_file():
        return _run_directory(args.paths[0], args.jobs)
    if args.one_clock and not args.join:
        raise SpecError("--one-clock says something about joined captures: give --join too")
    if args.csv:
        claim(args.csv)  # refused at once, not after minutes of reading
    if args.html:
        claim_page(args.html)
    points = _points(args.paths, args.merge)
    files = [file for _, group in points for file in group]
    join = None
    if args.join:
        for file in files:
            if not file.is_file():
                raise CaptureError(f"{file}: joining reads a capture twice, which this is no file for: write it to one")
        cell = all(cell for cell, _ in points)
        join = join_captures(files, one_clock=args.one_clock or cell, whole=cell)
    found = summarise_points([group for _, group in points], full=args.full)
    if args.csv:
        write_tables(args.csv, found, join)
    if args.html:
        write_page(args.html, found, join)
    if args.json:
        sys.stdout.buffer.write(_json(found, join) + b"\n")
    else:
        print_captures(found, join)
    if args.csv and not args.json:
        print(f"tables: {args.csv}")
    if args.html and not args.json:
        print(f"page: {args.html}")
    return 0


def _json(found: Sequence[FileSummary], join: Join | None) -> bytes:
    value = {"format": FORMAT, "files": [one.as_json() for one in found]}
    if join is not None:
        value["join"] = join.as_json()
    return msgspec.json.format(msgspec.json.encode(value), indent=2)


def _run_directory(root: Path, jobs: int) -> int:
    run = RunDir(root)
    plan = read_json(run.plan, Plan)
    with locked(run):
        run.clear_partial()
        left = analyze_all(plan, run, jobs)
        results = tabulate(plan, run)
    summary.print_summary(plan, run, results, None, wall_s=None)
    if left:
        _say_left(left, len(plan.cells))
    return 0 if not left and all(outcome.outcome is Outcome.COMPLETED for outcome in results.outcomes.values()) else 1


def _say_left(left: Mapping[str, list[str]], cells: int) -> None:
    """Which cells keep their outcome and derived files, and why."""
    print(
        f"netwarp: {len(left)} of {cells} cells were not analysed again; their outcomes and derived files stay. "
        "Missing files:",
        file=sys.stderr,
    )
    for cell_id, missing in list(left.items())[:MOST_LEFT]:
        print(f"  {cell_id}: {', '.join(missing)}", file=sys.stderr)
    if len(left) > MOST_LEFT:
        print(f"  ... and {len(left) - MOST_LEFT} more cells", file=sys.stderr)


def _points(paths: Sequence[Path], merge: bool) -> list[tuple[bool, list[Path]]]:
    """Capture points: (whether of a netwarp cell, whose clock is one, and its files). A cell's files go by node."""
    found: list[tuple[bool, list[Path]]] = []
    for path in (Path("/dev/stdin") if str(one) == "-" else one for one in paths):
        if not path.is_dir():
            if not path.exists():
                raise CaptureError(f"{path}: no such capture")
            found.append((False, [path]))
            continue
        folder = path / "capture" if (path / "capture").is_dir() else path
        captures = sorted({one for pattern in CAPTURES for one in folder.glob(pattern)})
        if not captures:
            raise CaptureError(f"{path}: neither a run directory (no plan.json) nor a directory of captures")
        cell = CellDir(folder.parent)
        if cell.cell.is_file():
            found += [(True, group) for group in _by_node(cell.read_cell(), captures)]
        else:
            found += [(False, [one]) for one in captures]
    if merge:
        if any(cell for cell, _ in found):
            raise SpecError("--merge: the captures of a cell are merged by host already")
        merged = [file for _, group in found for file in group]
        if len({os.path.realpath(file) for file in merged}) < len(merged):
            raise CaptureError("one file is given twice: merged, every packet of it would be a retransmission")
        return [(False, merged)]
    return found


def _by_node(cell: Cell, captures: Sequence[Path]) -> list[list[Path]]:
    """The captures of each host, which are named <node>-<interface>; a router's one by one, as its packets pass two."""
    hosts = {node.name for node in cell.nodes if node.kind == "host"}
    nodes = {f"{one.node}-{one.link}": one.node for one in cell.captures if one.node in hosts}
    groups: dict[str, list[Path]] = {}
    for capture in captures:
        stem = capture.name.split(".pcap")[0]
        groups.setdefault(nodes.get(stem, stem), []).append(capture)
    return list(groups.values())
