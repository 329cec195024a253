"""The smaller commands: plan, profiles, report, export, clean."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from ..core import invocation
from ..core.errors import SpecError
from ..core.lines import Line, columns
from ..core.numbers import given, with_unit
from ..core.units import counted, counted_of
from ..engine.analysis import report
from ..engine.calibration import measured_profiles
from ..engine.cleaning import remove_captures, remove_derived
from ..engine.export import export_captures, export_har
from ..engine.planning import fit, refusals
from ..engine.stored_files import changed_lines
from ..experiment import EXAMPLE_SPEC, list_profiles
from ..experiment.problems import nearest
from ..plan.group_words import group_lines
from ..plan.notes import notes
from ..plan.schedules import most_cells
from ..present.profile_table import profile_words
from ..sandbox.choose import BACKENDS
from ..sandbox.hosts import InventoryFit, in_words
from ..sandbox.own_programs import programs_notice
from ..sandbox.privileges import unprivileged
from ..store.run_dir import RunDir
from ..testbed.compile import Clock, compile_cell
from ..testbed.steps import to_commands
from . import EXIT_UNAVAILABLE
from .output import print_json, print_lines
from .places import new_folder
from .run import add_inventory_arguments, add_plan_arguments, add_shard_argument, plan_of
from .summary import size_words


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare them."""
    plan = commands.add_parser("plan", example="netwarp plan choi2009 --where outage='10 s'")
    add_plan_arguments(plan)
    add_shard_argument(plan)
    plan.add_argument(
        "--backend", default="auto", choices=BACKENDS, help="whose kernel must know the sysctls (default: auto); "
        "hosts: what the machines of --inventory lack",
    )  # fmt: skip
    add_inventory_arguments(plan)
    plan.add_argument("--offline", action="store_true", help="of hosts: from the inventory alone; ask no machine")
    plan.add_argument("--example", action="store_true", help="print a minimal complete spec")
    plan.add_argument("--steps", action="store_true", help="print each cell as the ip, tc and sysctl commands it means")
    plan.add_argument("--json", action="store_true", help="print the plan as JSON")
    plan.set_defaults(run=run_plan)
    reports = commands.add_parser("report", example="netwarp report results/choi2009/latest")
    reports.add_argument("run_dir", type=Path, metavar="RUN_DIR")
    reports.add_argument("--spec", type=Path, help="with the tables, figures, claims and answers of this spec instead")
    reports.set_defaults(run=run_report)
    profiles = commands.add_parser("profiles", example="netwarp profiles mobile-5g")
    profiles.add_argument("names", nargs="*", metavar="PROFILE", help="everything these say, and what was measured")
    profiles.set_defaults(run=run_profiles)
    exports = commands.add_parser("export", example="netwarp export a-p1.pcap.zst b-p1.pcap.zst --out plain")
    exports.add_argument(
        "captures", nargs="+", type=Path, metavar="CAPTURE | CELL_DIR",
        help="captures (.zst and .gz are expanded, others copied), or directories of them, a cell's among them",
    )  # fmt: skip
    exports.add_argument(
        "--out", type=new_folder, metavar="DIR", default=Path(), help="directory to write to (default: here)"
    )
    exports.add_argument("--har", action="store_true", help="RUN CELL: the pages of a cell as HAR 1.2 instead")
    exports.set_defaults(run=run_export)
    cleans = commands.add_parser(
        "clean",
        description="Removes leftovers of interrupted runs, derived files, tables and report of runs (captures stay); "
        "with --captures the captures instead (all else stays). Without a run: lists the sizes of the runs below "
        "results/.",
        example="netwarp clean --captures results/choi2009/latest",
    )
    cleans.add_argument("run_dirs", nargs="*", type=Path, metavar="RUN_DIR")
    cleans.add_argument(
        "--captures", action="store_true", help="remove the captures of finished runs, and nothing else"
    )
    cleans.set_defaults(run=run_clean)


def run_plan(args: argparse.Namespace) -> int:
    """`netwarp plan`."""
    if args.example:
        print(EXAMPLE_SPEC, end="")
        return 0
    if args.backend == "hosts":
        return _plan_hosts(args)
    plan = plan_of(args, args.backend)
    if args.json:
        print_json(plan, indent=2)
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
    if brought := programs_notice(plan.cells, unprivileged()):
        print(brought, file=sys.stderr)
    for line in group_lines(plan):
        print(line, file=sys.stderr)
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
    fits = fit(plan_of(args, None), args.inventory, ask=not args.offline, allow_programs=args.allow_programs)
    if args.json:
        print_json(fits, indent=2)
    else:
        print("\n".join(_fit_words(fits)))
    return 0 if fits.ready else EXIT_UNAVAILABLE


def _fit_words(fit: InventoryFit) -> Iterator[str]:
    """A line each: what is lacking, what is used of each machine, and what cannot run for it."""
    yield f"{counted_of(fit.fitting, fit.cells, 'cell')} can run on these machines"
    for what, remedy in fit.problems:
        yield f"no cell runs as long as: {what}"
        yield f"  {remedy}"
    for sentence, cells in fit.lacks.items():
        yield f"{counted(cells, 'cell')}: {sentence}"
    for sentence, cells in fit.notes.items():
        yield f"{counted(cells, 'cell')}: {sentence}"
    for machine, features in fit.needs.items():
        names = dict.fromkeys(in_words(feature)[0] for feature in features if not feature.startswith("sysctl:"))
        sysctls = sum(feature.startswith("sysctl:") for feature in features)
        asked = "asked, see above" if machine in fit.asked else "not asked"
        yield f"{machine}: needs {', '.join([*names, counted(sysctls, 'sysctl')])} of its kernel ({asked})"


def run_report(args: argparse.Namespace) -> int:
    """`netwarp report`."""
    said = changed_lines(args.run_dir) if args.spec is None else []
    print(report(args.run_dir, spec=args.spec))
    for line in said:
        print(line, file=sys.stderr)
    return 0


def run_profiles(args: argparse.Namespace) -> int:
    """`netwarp profiles`: a line each; of those named everything."""
    known = list_profiles()
    for name in args.names:
        if name not in known:
            raise SpecError(f'there is no profile "{name}"{nearest(name, known)}')
    if not args.names:
        print_lines(columns(list(known.items())))
    else:
        print_lines(Line(line) for name in args.names for line in profile_words(name, known[name], measured_profiles()))
    return 0


def run_export(args: argparse.Namespace) -> int:
    """Print the name of each file as it is written."""
    if args.har:
        if len(args.captures) != 2:
            raise SpecError("--har takes a run and a cell; for example --har results/lee2008/latest CELL_ID")
        run, cell = args.captures
        targets = iter(export_har(run, str(cell), args.out))
    else:
        targets = export_captures(args.captures, args.out)
    for target in targets:
        print(target)
    return 0


def run_clean(args: argparse.Namespace) -> int:
    """`netwarp clean`."""
    for root in args.run_dirs:
        if not RunDir(root).plan.exists():  # nothing is removed where one name is wrong
            raise SpecError(f"{root}: is not a run directory of netwarp's (no plan.json)")
    for root in args.run_dirs:
        print(f"{root}: {_remove_captures(root) if args.captures else _remove_derived(root)}")
    if not args.run_dirs:
        _list(" --captures" if args.captures else "")
    return 0


def _remove_captures(root: Path) -> str:
    freed = remove_captures(root)
    if not freed.captures:
        return "has no captures"
    return f"freed {with_unit(freed.bytes, 'bytes')}: {counted(freed.captures, 'capture')}"


def _remove_derived(root: Path) -> str:
    freed = remove_derived(root)
    return f"freed {with_unit(freed.bytes, 'bytes')}; netwarp analyze {root} makes the derived files again"


def _list(option: str) -> None:
    """Every run below results/ with its size."""
    for plan in sorted(Path("results").glob("*/*/plan.json")):
        if not plan.parent.is_symlink():
            print(f"{plan.parent}: {size_words(*RunDir(plan.parent).sizes())}")
    print(f"nothing was removed; name the runs: {invocation.command('clean')}{option} RUN_DIR...")
