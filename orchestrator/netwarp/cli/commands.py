"""The smaller commands: plan, report, profiles, archive unpack."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import msgspec

from ..core.errors import SpecError
from ..core.numbers import given
from ..core.units import counted
from ..engine.analysis import report
from ..engine.calibration import measured_profiles
from ..engine.cleaning import unpack
from ..engine.inventory_fit import fit
from ..engine.planning import refusals
from ..experiment import EXAMPLE_SPEC, list_profiles
from ..experiment.problems import nearest
from ..plan.notes import notes
from ..plan.schedules import most_cells
from ..present.inventory_words import fit_words
from ..present.profile_table import profile_words
from ..sandbox.choose import BACKENDS
from ..testbed.compile import Clock, compile_cell
from ..testbed.steps import to_commands
from . import EXIT_UNAVAILABLE
from .run import add_plan_arguments, add_shard_argument, plan_of


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare them."""
    plan = commands.add_parser("plan", help="show what would be run, without running it")
    add_plan_arguments(plan)
    add_shard_argument(plan)
    plan.add_argument(
        "--backend", default="auto", choices=BACKENDS, help="whose kernel must know the sysctls (default: auto); "
        "hosts: what the machines of --inventory lack",
    )  # fmt: skip
    plan.add_argument("--inventory", type=Path, metavar="FILE", help="of hosts: machines, as Ansible knows them")
    plan.add_argument("--offline", action="store_true", help="of hosts: from the inventory alone; ask no machine")
    plan.add_argument("--example", action="store_true", help="print a minimal complete spec")
    plan.add_argument("--steps", action="store_true", help="print each cell as the ip, tc and sysctl commands it means")
    plan.add_argument("--json", action="store_true", help="print the plan as JSON")
    plan.set_defaults(run=run_plan)
    reports = commands.add_parser("report", help="make the report of a run directory again")
    reports.add_argument("run_dir", type=Path)
    reports.add_argument("--spec", type=Path, help="with the tables, figures, claims and answers of this spec instead")
    reports.set_defaults(run=run_report)
    unpacks = commands.add_parser(
        "archive unpack", help="make cells/<cell_id>/ of packed cells again (netwarp run --pack)"
    )
    unpacks.add_argument("run_dir", type=Path)
    unpacks.set_defaults(run=run_unpack)
    profiles = commands.add_parser("profiles", help="list the link profiles of netem-profiles/")
    profiles.add_argument("names", nargs="*", metavar="PROFILE", help="everything these say, and what was measured")
    profiles.set_defaults(run=run_profiles)


def run_unpack(args: argparse.Namespace) -> int:
    """`netwarp archive unpack`."""
    print(f"{counted(unpack(args.run_dir), 'cell')} unpacked", file=sys.stderr)
    return 0


def run_plan(args: argparse.Namespace) -> int:
    """`netwarp plan`."""
    if args.example:
        print(EXAMPLE_SPEC, end="")
        return 0
    if args.backend == "hosts":
        return _plan_hosts(args)
    plan = plan_of(args, args.backend)
    if args.json:
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(plan), indent=2) + b"\n")
        return 0
    for cell in plan.cells:
        print(f"{cell.experiment}  {cell.id}")
        if args.steps:
            print(to_commands(compile_cell(cell, Clock(t0_realtime_ns=0)).steps))
    virtual_s = sum(cell.duration_ns for cell in plan.cells) / 1e9
    print(f"{counted(len(plan.cells), 'cell')}, {given(virtual_s)} virtual seconds", file=sys.stderr)
    if (most := most_cells(plan)) > len(plan.cells):
        print(
            f"schedules of packets are added while it runs, from the captures of these: at most {most} cells in all",
            file=sys.stderr,
        )
    for note in notes(plan, args.backend):
        print(f"note: {note}", file=sys.stderr)
    refused = refusals(plan, args.backend)
    for why, cells in refused.items():
        print(f"{counted(cells, 'cell')} cannot run: {why}", file=sys.stderr)
    return EXIT_UNAVAILABLE if sum(refused.values()) == len(plan.cells) else 0


def _plan_hosts(args: argparse.Namespace) -> int:
    """Prints an inventory's lacks: 0 where every cell can run, 77 where not."""
    if args.inventory is None:
        raise SpecError("--backend hosts needs --inventory FILE (docs/physical-hosts.md)")
    fits = fit(plan_of(args, None), args.inventory, ask=not args.offline)
    if args.json:
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(fits), indent=2) + b"\n")
    else:
        print("\n".join(fit_words(fits)))
    return 0 if fits.ready else EXIT_UNAVAILABLE


def run_report(args: argparse.Namespace) -> int:
    """`netwarp report`."""
    print(report(args.run_dir, spec=args.spec))
    return 0


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
