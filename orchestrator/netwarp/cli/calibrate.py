"""`netwarp calibrate`: measured against configured, one line a probe."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from rich.table import Table

from ..core.numbers import DASH, given, percent
from ..engine.calibration import AQM, BUCKETS, GENERIC, IPV6, NETEM, NOT_COMPLETED, RULES, calibrate
from ..present.profile_table import profile_table
from ..store.probe_rows import ProbeRow
from .output import make_table, plain_console, print_json
from .places import new_file, new_folder
from .progress import TerminalProgress


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser("calibrate", example="netwarp calibrate generic aqm --full")
    parser.add_argument(
        "names", nargs="*", metavar="PROFILE",
        help=f"profiles (`netwarp profiles`), {GENERIC} (rates, delays, faults), {NETEM} (each option), "
        f"{RULES} (losses by the packet), {AQM} (each kind's law), {BUCKETS} (policers, "
        f"bursts, slots, opportunities), {IPV6} ({GENERIC}, {RULES}, {BUCKETS} on it); default: all",
    )  # fmt: skip
    parser.add_argument("--backend", choices=("virtual", "guest", "netns"), default="virtual", help="default: virtual")
    parser.add_argument("--jobs", type=int, metavar="N", help="cells at once (default: cores)")
    parser.add_argument(
        "--out", type=new_folder, metavar="DIR", help="keep the captures of the probes in this run directory"
    )
    parser.add_argument(
        "--html",
        type=new_file,
        metavar="FILE",
        help="write the page there too (default: beside the stored calibration)",
    )
    parser.add_argument("--full", action="store_true", help="every comparison, not only those that are off")
    parser.add_argument("--json", action="store_true", help="print calibration.json instead of the table")
    parser.add_argument("--markdown", action="store_true", help="print the table of netem-profiles/README.md instead")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Measure anew; 0 if everything is within its bounds, else 1."""
    with TerminalProgress() as progress:
        done = calibrate(
            args.names, backend=args.backend, jobs=args.jobs, out=args.out, html=args.html, progress=progress
        )
    measured = done.calibration
    if args.json:
        print_json(measured, indent=2)
    elif args.markdown:
        print(profile_table(measured.rows), end="")
    else:
        show(f"Calibration of Linux {measured.kernel_release}, back end {measured.backend}", measured.rows, args.full)
        if done.page is not None:
            print(done.page)
    return 0 if done.passed else 1


def show(title: str, rows: Sequence[ProbeRow], full: bool) -> None:
    """The summary, then every comparison (`full`) or those that are off."""
    console = plain_console()
    console.print(_summary(title, rows))
    listed = [row for row in rows if row.unit != NOT_COMPLETED and (full or not row.ok)]
    if listed:
        console.print(_rows(listed))
    for row in rows:
        if row.unit == NOT_COMPLETED:  # a sentence, no number
            console.print(f"{row.probe}: {row.quantity}", markup=False, soft_wrap=True)
    console.print(f"{sum(row.ok for row in rows)} of {len(rows)} within bounds")


def share(row: ProbeRow) -> float:
    """The share of its bound that a comparison used up; of an exact one 0 or, where it is off, more than 1."""
    if row.measured is None:
        return float("inf")
    off = abs(row.measured - row.configured)
    return off / row.bound if row.bound else (2.0 if not row.ok else 0.0)


def _summary(title: str, rows: Sequence[ProbeRow]) -> Table:
    table = make_table(title, "probe", "within bounds", "nearest to its bound")
    for probe in dict.fromkeys(row.probe for row in rows):
        mine = [row for row in rows if row.probe == probe]
        good, worst = sum(row.ok for row in mine), max(mine, key=share)
        words = f"{percent(min(share(worst), 9.99), 2)} of it: {worst.quantity}" if worst.bound else "all exact"
        mark = "" if good == len(mine) else "[bold red]OFF [/]"
        table.add_row(probe, f"{mark}{good} of {len(mine)}", words if worst.ok else f"beyond: {worst.quantity}")
    return table


def _rows(rows: Sequence[ProbeRow]) -> Table:
    table = make_table("", "probe", "quantity", ">configured", ">measured", ">off by", ">bound", "unit", "")
    for row in rows:
        measured = DASH if row.measured is None else given(row.measured)
        difference = DASH if row.measured is None else given(row.measured - row.configured, 3)
        table.add_row(
            row.probe, row.quantity, given(row.configured), measured, difference, given(row.bound, 3),
            row.unit, "ok" if row.ok else "[bold red]OFF[/]",
        )  # fmt: skip
    return table
