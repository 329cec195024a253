"""The smaller commands: plan, report, export, profiles."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import msgspec
import zstandard

from ..errors import CaptureError, SpecError, StoreError
from ..report.summary import plural
from ..spec import EXAMPLE_SPEC, list_profiles
from ..spec.problems import nearest
from ..store import RunDir, read_json
from ..study import Plan
from ..testbed.compile import Clock, compile_cell
from ..testbed.steps import to_commands
from .calibrate import measured_profiles
from .calibrate_text import profile_words
from .run import add_plan_arguments, plan_of
from .stages import report, tabulate


def add_parsers(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare them."""
    plan = commands.add_parser("plan", help="show what would be run, without running it")
    add_plan_arguments(plan)
    plan.add_argument("--example", action="store_true", help="print a minimal complete spec")
    plan.add_argument("--steps", action="store_true", help="print each cell as the ip, tc and sysctl commands it means")
    plan.add_argument("--json", action="store_true", help="print the plan as JSON")
    plan.set_defaults(run=run_plan)
    reports = commands.add_parser("report", help="make the report of a run directory again")
    reports.add_argument("run_dir", type=Path)
    reports.set_defaults(run=run_report)
    export = commands.add_parser("export", help="write captures as plain pcap files")
    export.add_argument("captures", nargs="+", type=Path, metavar="CAPTURE.pcap.zst")
    export.add_argument("--out", type=Path, default=Path(), help="directory to write to (default: here)")
    export.set_defaults(run=run_export)
    profiles = commands.add_parser("profiles", help="list the link profiles of netem-profiles/")
    profiles.add_argument("names", nargs="*", metavar="PROFILE", help="everything these say, and what was measured")
    profiles.set_defaults(run=run_profiles)


def run_plan(args: argparse.Namespace) -> int:
    """`netwarp plan`."""
    if args.example:
        print(EXAMPLE_SPEC, end="")
        return 0
    _, plan = plan_of(args)
    if args.json:
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(plan), indent=2) + b"\n")
        return 0
    for cell in plan.cells:
        print(f"{cell.experiment}  {cell.id}")
        if args.steps:
            print(to_commands(compile_cell(cell, Clock(t0_realtime_ns=0)).steps))
    virtual_s = sum(cell.duration_ns for cell in plan.cells) / 1e9
    print(f"{plural(len(plan.cells), 'cell')}, {virtual_s:g} virtual seconds", file=sys.stderr)
    return 0


def run_report(args: argparse.Namespace) -> int:
    """`netwarp report`."""
    run = RunDir(args.run_dir)
    plan = read_json(run.plan, Plan)
    if not (run.tables / "cells.csv").exists():
        tabulate(plan, run)
    print(report(run))
    return 0


def run_export(args: argparse.Namespace) -> int:
    """`netwarp export`: CAPTURE.pcap.zst -> CAPTURE.pcap."""
    args.out.mkdir(parents=True, exist_ok=True)
    for capture in args.captures:
        if capture.suffix != ".zst":
            raise CaptureError(f"{capture}: not a .zst capture; it needs no export")
        target = args.out / capture.name.removesuffix(".zst")
        if target.exists():
            raise StoreError(f"{target}: exists; remove it or choose another --out")
        expand(capture, target)
        print(target)
    return 0


def expand(capture: Path, target: Path) -> None:
    """Decompress into a file that is whole or not there; raises CaptureError."""
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with open(capture, "rb") as source, open(temporary, "wb") as sink:
            zstandard.ZstdDecompressor().copy_stream(source, sink)
        os.replace(temporary, target)
    except (OSError, zstandard.ZstdError) as error:
        raise CaptureError(f"{capture}: cannot be exported: {error}") from error
    finally:
        temporary.unlink(missing_ok=True)


def run_profiles(args: argparse.Namespace) -> int:
    """`netwarp profiles`: a line each; of those named everything."""
    known = list_profiles()
    for name in args.names:
        if name not in known:
            raise SpecError(f'there is no profile "{name}"{nearest(name, known)}')
    if not args.names:
        for name, title in known.items():
            print(f"{name:<24} {title}")
    else:
        print("\n".join(line for name in args.names for line in profile_words(name, known[name], measured_profiles())))
    return 0
