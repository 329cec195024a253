"""`netwarp clean`: removes the captures of finished runs, or what can be made again from them."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..core import invocation
from ..core.errors import SpecError
from ..core.numbers import with_unit
from ..core.units import counted
from ..engine.cleaning import remove_captures, remove_derived
from ..store.run_dir import RunDir
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
