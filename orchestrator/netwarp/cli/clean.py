"""`netwarp clean`: removes the captures of finished runs, or what can be made again from them."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from ..core import invocation
from ..core.errors import SpecError, StoreError
from ..core.numbers import with_unit
from ..core.types import Outcome
from ..core.units import counted
from ..plan.types import Plan
from ..store.run_dir import RunDir, locked, read_json
from .summary import size_words


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "clean",
        help="remove what interrupted runs left, derived files, tables and report of runs (captures stay); "
        "with --captures the captures instead (all else stays); without a run: list what the runs below results/ take",
    )
    parser.add_argument("run_dirs", nargs="*", type=Path, metavar="RUN_DIR")
    parser.add_argument(
        "--captures", action="store_true", help="remove the captures of finished runs, and nothing else"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """`netwarp clean`."""
    runs = [RunDir(root) for root in args.run_dirs]
    for one in runs:
        if not one.plan.exists():
            raise SpecError(f"{one.root}: is not a run directory of netwarp's (no plan.json)")
    for one in runs:
        with locked(one):
            print(f"{one.root}: {remove_captures(one) if args.captures else remove_derived(one)}")
    if not runs:
        _list(" --captures" if args.captures else "")
    return 0


def remove_captures(run: RunDir) -> str:
    """Remove a finished run's captures; what was freed, in words. Raises StoreError where a capture is still needed:
    cells were not run or not analysed.
    """
    captures = run.captures()
    if not captures:
        return "has no captures"
    plan = read_json(run.plan, Plan)
    finished = run.finished()
    left = [cell.id for cell in plan.cells if cell.id not in finished]
    if left:
        raise StoreError(
            f"{run.root}: {len(left)} of its {counted(len(plan.cells), 'cell')} were not run; finish it first with "
            "netwarp run ... --resume, or remove the whole directory"
        )
    for cell_id in sorted(finished):
        cell = run.cell(cell_id)
        if cell.read_outcome().outcome is Outcome.COMPLETED and not cell.checks.exists():
            raise StoreError(f"{run.root}: {cell_id} was never analysed; run `netwarp analyze {run.root}` first")
    size = sum(path.stat().st_size for path in captures)
    for path in captures:
        path.unlink()
    return f"freed {with_unit(size, 'bytes')}: {counted(len(captures), 'capture')}"


def remove_derived(run: RunDir) -> str:
    """Remove what an interrupted run left and what can be made again from the captures; what was freed, in words.

    Raises StoreError where there are no captures to make it from.
    """
    finished = sorted(run.finished())
    for cell_id in finished:
        cell = run.cell(cell_id)
        if cell.checks.exists() and not any(cell.capture.glob("*.pcap*")):
            raise StoreError(
                f"{run.root}: the captures of {cell_id} were removed, so its derived files cannot be made again; "
                "nothing was removed. To remove all of the run, remove the directory"
            )
    before, _ = run.sizes()
    run.clear_partial()
    for path in [run.tables, run.report, *(run.cell(cell_id).derived for cell_id in finished)]:
        if path.exists():
            shutil.rmtree(path)
    return (
        f"freed {with_unit(before - run.sizes()[0], 'bytes')}; netwarp analyze {run.root} makes the derived files again"
    )


def _list(option: str) -> None:
    """Every run below results/ with its size."""
    for plan in sorted(Path("results").glob("*/*/plan.json")):
        if not plan.parent.is_symlink():
            print(f"{plan.parent}: {size_words(*RunDir(plan.parent).sizes())}")
    print(f"nothing was removed; name the runs: {invocation.command('clean')}{option} RUN_DIR...")
